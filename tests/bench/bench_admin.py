"""Measure how the admin's lists grow: each page with 1,000 and with 100,000 memories and messages, and the ratio.

Run by hand: ``pytest tests/bench/bench_admin.py -s``. It asserts no time, which depends on the machine's load, but that
a page sends no query for each row: a table of any size costs at most the few queries that a count of many rows takes
instead of one.
"""

from statistics import median
from time import perf_counter
from typing import NamedTuple

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chat.models import Message
from memories.models import Memory
from tests.bench.bulk import insert_memories, insert_messages
from tests.factories import make_chat, make_user
from workspaces.index.embedding import active_model

SMALL, LARGE, REPEATS = 1_000, 100_000, 5
A_FEW = 3
LIST = "/admin/memories/memory/?"
PAGES = {
    "first page": "/admin/",
    "refusals": "/admin/memories/refusal/",
    "all memories": LIST,
    "in use": LIST + "state=live",
    "page 15": LIST + "p=15",
    "forgotten": LIST + "state=deleted",
    "expired": LIST + "state=expired",
    "a workspace": LIST + "workspace={workspace}",
    "a workspace, forgotten": LIST + "workspace={workspace}&state=deleted",
    "source": LIST + "source=auto_chat",
    "source: nothing found": LIST + "source=import",
    "with a vector": LIST + "vector=with",
    "without a vector": LIST + "vector=without",
    "embedding failed": LIST + "vector=failed",
    "may replace": LIST + "state=replaces",
    "pinned": LIST + "pinned__exact=1",
    "search: common word": LIST + "q=house",
    "search: two words": LIST + "q=red+kettle",
    "search: rare word": LIST + "q={rare}",
    "search: beginning": LIST + "q={beginning}",
    "search: inside a word": LIST + "q={inside}",
    "search: nothing": LIST + "q=xyzzyplugh",
    "search: id": LIST + "q={id}",
    "one memory": "/admin/memories/memory/{pk}/change/",
    "messages": "/admin/chat/message/",
    "messages: text": "/admin/chat/message/?q=xyzzyplugh",
    "messages: assistant's": "/admin/chat/message/?role__exact=assistant",
}


class Cost(NamedTuple):
    milliseconds: float
    queries: int


def _cost(client: Client, page: str) -> Cost:
    taken = []
    for _ in range(REPEATS):
        start = perf_counter()
        assert client.get(page).status_code == 200
        taken.append((perf_counter() - start) * 1000)
    with CaptureQueriesContext(connection) as queries:
        client.get(page)
    return Cost(median(taken), len(queries))


def _measure(rows: int) -> dict[str, Cost]:
    admin = make_user(f"admin{rows}", is_staff=True, is_superuser=True)
    workspaces = insert_memories(rows, author=admin, model=active_model())
    insert_messages(rows, chat_id=make_chat(admin, title="Long").pk)
    with connection.cursor() as cursor:  # spread over 200 days
        cursor.execute("UPDATE memories_memory SET created_at = now() - (random() ^ 2) * interval '200 days'")
        cursor.execute("VACUUM ANALYZE memories_memory, workspaces_passagevector, chat_message")
    memory = Memory.objects.order_by("pk")[rows // 2]
    hexadecimal = memory.content.split("number ")[1].split(" ")[0]
    values = {
        "workspace": workspaces[0].pk,
        "rare": hexadecimal,
        "beginning": hexadecimal[:7],
        "inside": hexadecimal[5:14],
        "id": memory.public_id,
        "pk": memory.pk,
    }
    client = Client()
    client.force_login(admin)
    client.get("/admin/")
    return {name: _cost(client, page.format(**values)) for name, page in PAGES.items()}


@pytest.mark.django_db(transaction=True)
def test_growth() -> None:
    small = _measure(SMALL)
    Message.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE memories_memory CASCADE")
    large = _measure(LARGE)
    print(f"\n{'page':26}{SMALL:>10,} rows{LARGE:>12,} rows    ratio")
    for name in PAGES:
        before, after = small[name].milliseconds, large[name].milliseconds
        print(f"{name:26}{before:>12.1f} ms{after:>14.1f} ms{after / before:>9.1f}")
    more = {name: (small[name].queries, large[name].queries) for name in PAGES}
    assert all(after <= before + A_FEW for before, after in more.values()), more
