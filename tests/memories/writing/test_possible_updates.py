"""Near-duplicates that the guard keeps: linked by the writer, shown in panel and admin, decided by one click."""

import re
from collections.abc import Sequence

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from memories.models import Memory
from memories.writing.gate import Draft, save_memory
from memoryhub.llm.e5 import States
from memoryhub.llm.registry import get_reader
from tests.admin_pages import said
from tests.conftest import Cast

LIST = "/admin/memories/memory/"


@pytest.fixture
def linked(cast: Cast) -> tuple[Memory, Memory]:
    """Create an older memory and the newer one that may replace it, with the bundled embedder."""
    older, newer = (
        save_memory(
            Draft(
                content=f"The print run starts on March {day}", workspace=cast.workspace, author=cast.owner
            ),
            by=cast.owner,
            now=timezone.now(),
        ).memory
        for day in (15, 22)
    )
    assert newer.may_replace == older
    return older, newer


def test_the_guard_reads_what_is_near_before_the_transaction(
    cast: Cast, linked: tuple[Memory, Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Encoding inside the transaction would make others wait; the results are cached."""
    encoder = get_reader().encoder
    read, depths = encoder.states, set()

    def noting(texts: Sequence[str]) -> list[States]:
        depths.add(len(connection.savepoint_ids))
        return read(texts)

    monkeypatch.setattr(encoder, "states", noting)
    draft = Draft(
        content="March 22 is when the print run starts", workspace=cast.workspace, author=cast.owner
    )
    save_memory(draft, by=cast.owner, now=timezone.now())
    assert depths == {len(connection.savepoint_ids)}


def form_of(html: str) -> str:
    found = re.search(r'<form[^>]*class="decide">.*?</form>', html, re.S)
    return found.group() if found else ""


def press(client: Client, memory: Memory, action: str) -> list[str]:
    """Press a button on a memory's admin page and confirm. Return the messages."""
    form = form_of(client.get(f"{LIST}{memory.pk}/change/").content.decode())
    assert f'name="action" value="{action}"' in " ".join(form.split())
    hidden = dict(re.findall(r'type="hidden"\s+name="(_selected_action)"\s+value="(\d+)"', form))
    target = re.search(r'action="([^"]+)"', form)
    assert target is not None
    asked = client.post(target.group(1), {**hidden, "action": action})
    assert asked.context["keys"] == [memory.pk]
    answer = {**hidden, "action": action, "confirmed": "yes"}
    return said(client.post(target.group(1), answer, follow=True))


def test_the_admin_lists_it_and_replaces_the_older_with_one_click(
    admin_client: Client, linked: tuple[Memory, Memory]
) -> None:
    older, newer = linked
    html = admin_client.get(f"{LIST}?state=replaces").content.decode()
    assert newer.content in html and "may replace an older one" in html
    assert older.content in admin_client.get(f"{LIST}{newer.pk}/change/").content.decode()
    assert press(admin_client, newer, "replace_older") == ["1 memory replaced an older one."]
    assert list(Memory.objects.not_over(timezone.now())) == [newer]
    assert "replace_older" not in form_of(admin_client.get(f"{LIST}{newer.pk}/change/").content.decode())
