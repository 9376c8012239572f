"""Citations of a report: only what its reader may open: a page of a document, a memory, a message, a web page."""

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from chat.models import Run, RunMode
from chat.runs.run_display import with_sources
from tests.conftest import Cast
from tests.factories import make_chat, make_document, make_memory, make_message

pytestmark = pytest.mark.django_db
INVENTED = "https://evil.example/?said=secret"


@pytest.fixture
def run(cast: Cast) -> Run:
    values: dict[str, Any] = {"workspace": cast.workspace, "user": cast.owner, "mode": RunMode.RESEARCH}
    return Run.objects.create(
        objective="x", deadline_at=timezone.now(), web_urls=["https://example.org/a"], **values
    )


def report(*sources: str) -> str:
    listed = "\n".join(f"{number}. {source}, what it is" for number, source in enumerate(sources, 1))
    cited = " ".join(f"Said [{number}]." for number in range(1, len(sources) + 1))
    return f"{cited}\n\nSources\n\n{listed}"


def links(text: str) -> dict[str, str]:
    return dict(re.findall(r"\[\\\[(\d+)\\\]\]\(<([^>]+)>\)", text))


def test_each_number_opens_its_source(run: Run, cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    message, memory = (
        make_message(chat, "We pay 7 euros"),
        make_memory("We pay 7 euros", cast.owner, cast.workspace),
    )
    document = make_document(cast.owner, cast.workspace, embedded=False)
    document.passages.update(page=2)
    text = report(
        memory.public_id,
        message.public_id,
        f"{document.public_id}#2",
        document.public_id,
        "https://example.org/a",
    )
    home = f"/workspaces/{cast.workspace.public_id}/"
    opened = links(with_sources(run, text, cast.owner))
    assert opened == {
        "1": f"{home}?find={memory.public_id}",
        "2": f"/chats/{chat.public_id}/?at={message.public_id}#{message.public_id}",
        "3": f"{home}documents/{document.public_id}/?passage=0#passage-0",
        "4": f"{home}documents/{document.public_id}/",
        "5": "https://example.org/a",
    }
    client = Client()
    client.force_login(cast.owner)
    assert all(client.get(url).status_code == 200 for number, url in opened.items() if number != "5")
    panel = client.get(f"{home}memories/", {"q": memory.public_id}).content.decode()
    assert "We pay 7 euros" in panel
    assert "[\\[1\\]](<" in with_sources(run, f"Both [1, 9].\n\n1. {memory.public_id}", cast.owner)


def test_nothing_opens_that_its_reader_may_not_see_or_that_no_search_found(run: Run, cast: Cast) -> None:
    private = make_chat(cast.editor, cast.workspace, is_private=True)
    theirs = make_memory("My rent", cast.editor, scope="user")
    sources = [
        make_message(private, "x").public_id,
        theirs.public_id,
        "mem_" + "x" * 24,
        INVENTED,
        "my own head",
    ]
    text = report(*sources)
    assert with_sources(run, text, cast.owner) == text
    for odd in ("[1](https://evil.example) [2]", "1. [2]", "", "```json\n[1]\n```", "[" * 5_000):
        assert with_sources(run, odd, cast.owner) == odd
