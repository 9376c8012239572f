"""The pages and endpoints of export and import: what they show, and their queries."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.import_export import import_jobs, upload_formats
from chat.models import Chat
from chat.models.imports import Import, ImportStatus
from memories.models import Memory
from memories.writing.gate import delete_memory
from tests.api import Api, error_of
from tests.chat.import_export.test_exchange import imported_whole, uploaded
from tests.chat.import_export.test_exchange_foreign import (
    LIST,
    SECRET,
    as_json,
)
from tests.chat.import_export.test_exchange_rules import (
    chat,
    file_of,
    memory,
    message,
)
from tests.conftest import Cast
from tests.factories import make_memory
from tests.fakes.pseudo_language import CLOSED, OPEN
from tests.signing_in import signed_in

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


def text_of(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def test_from_the_settings_to_a_finished_import(cast: Cast) -> None:
    client = signed_in(cast.editor)
    ws = cast.workspace.public_id
    settings_page = text_of(client, f"/workspaces/{ws}/settings/")
    assert f"/workspaces/{ws}/export/" in settings_page and f"/imports/?workspace={ws}" in settings_page
    assert f'value="{ws}" selected' in text_of(client, f"/imports/?workspace={ws}")
    file = SimpleUploadedFile("facts <b>.json", as_json(LIST))
    response = client.post("/imports/", {"file": file, "workspace": ws})
    imported = Import.objects.get()
    page = f"/imports/{imported.public_id}/"
    assert (response.status_code, response["Location"]) == (302, page)
    assert "Checking what would be stored" in text_of(client, page)
    assert "hx-get" in text_of(client, f"{page}progress/")
    import_jobs.advance(imported.pk, seconds=60)
    assert client.get(f"{page}progress/", headers=HTMX)["HX-Refresh"] == "true"
    shown = text_of(client, page)
    assert "facts &lt;b&gt;.json" in shown and "Olive lives in Lisbon" in shown
    assert "the same as line 1" in shown and "looks like a password or key" in shown and SECRET not in shown
    refused = text_of(client, f"{page}?show=refused")
    assert "looks like a password or key" in refused and "Rufus weighs" not in refused
    assert client.post(f"{page}start/", {"chats": "on", "memories": "on"}).status_code == 302
    assert "Storing" in text_of(client, page)
    import_jobs.advance(imported.pk, seconds=60)
    assert "Done. The uploaded file is deleted." in text_of(client, page)
    assert Memory.objects.count() == 3
    assert client.post(f"{page}delete/").status_code == 302
    assert "facts &lt;" not in text_of(client, "/imports/")


def test_a_preview_names_the_other_members_who_will_read_it(cast: Cast) -> None:
    upload = uploaded(cast.editor, file_of(chat()), workspace=cast.workspace)
    shown = text_of(signed_in(cast.editor), f"/imports/{upload.public_id}/")
    others = cast.workspace.memberships.count() - 1
    assert re.search(rf"{others} other members of .* will be able to read", shown)


def test_a_file_that_is_none_is_refused_at_the_form(cast: Cast) -> None:
    for content in (b"", b"\x00\x01", b"[]"):
        response = signed_in(cast.editor).post("/imports/", {"file": SimpleUploadedFile("x", content)})
        assert response.status_code == 422
        assert any(mark in response.content.decode() for mark in ('role="alert"', 'class="field__error"'))
        assert not Import.objects.exists()


def test_a_file_that_is_too_large_is_refused_before_it_is_read(cast: Cast, settings: Any) -> None:
    settings.IMPORT_MAX_BYTES = 1000
    data = {"file": SimpleUploadedFile("x", b"x" * 100_000)}
    assert signed_in(cast.editor).post("/imports/", data).status_code == 413
    response = Api(cast.editor).client.post(
        "/chat/api/imports", {"file": SimpleUploadedFile("x", b"x" * 100_000)}
    )
    assert (response.status_code, error_of(response)["code"]) == (413, "too_large")


def test_the_whole_way_over_rest(cast: Cast) -> None:
    api = Api(cast.editor)
    ws = cast.workspace.public_id
    known = make_memory("The roof leaks", cast.owner, cast.workspace)
    form = {"file": SimpleUploadedFile("list.json", as_json(LIST)), "workspace_id": ws}
    made = api.client.post("/chat/api/imports", form)
    assert made.status_code == 201
    imported = made.json()
    path = f"imports/{imported['id']}"
    assert (imported["status"], imported["checked"], imported["workspace_id"]) == ("preview", False, ws)
    assert error_of(api.post(f"{path}/start"))["code"] == "conflict"
    import_jobs.advance(Import.objects.get().pk, seconds=60)
    looked_at = api.get(path).json()
    assert looked_at["checked"] and looked_at["preview"]["memory"] == {
        "new": 2, "update": 0, "duplicate": 2, "refused": 3,
    }  # fmt: skip
    pages = api.pages(f"{path}/rows", limit=3)
    assert [len(page) for page in pages] == [3, 3, 1]
    rows = [row for page in pages for row in page]
    assert rows[2] | {"text": ""} == {
        "line": 3, "kind": "memory", "outcome": "duplicate", "reason": "", "text": "",
        "duplicate_of": "", "became": "", "same_as_line": 1,
    }  # fmt: skip
    assert rows[3]["text"] == "" and rows[3]["reason"] == "secret: content"
    assert rows[6]["duplicate_of"] == known.public_id
    refused = [row["line"] for page in api.pages(f"{path}/rows", outcome="refused") for row in page]
    assert refused == [4, 5, 6]
    page = text_of(api.client, f"/imports/{imported['id']}/")
    link = re.search(r'<a href="([^"]*)">already here as “The roof leaks”', page)
    assert link and "?find=The+roof+leaks" in link[1], "it leads to the memory"
    assert api.client.get(link[1]).status_code == 200
    assert api.post(f"{path}/start", {"chats": True, "twice": 1}).status_code == 422
    assert api.post(f"{path}/start", {"chats": False, "memories": False}).status_code == 422
    assert api.post(f"{path}/start").json()["status"] == "running"
    assert api.post(f"{path}/stop").json()["status"] == "stopped"
    assert api.post(f"{path}/resume").status_code == 202
    import_jobs.advance(Import.objects.get().pk, seconds=60)
    done = api.get(path).json()
    assert (done["status"], done["progress"], done["stored"]) == ("done", 1.0, done["preview"])
    assert [item["id"] for item in api.get("imports").json()["items"]] == [imported["id"]]
    assert api.delete(path).status_code == 204 and api.get(path).status_code == 404


def test_a_line_says_why_its_text_is_gone(cast: Cast) -> None:
    imported = uploaded(cast.owner, file_of(memory(), chat(title="")))
    page = f"/imports/{imported.public_id}/"
    client = signed_in(cast.owner)
    assert "(without a text)" in client.get(page).content.decode(), "a chat without a title"
    upload_formats.remove(imported.public_id)
    for status in ("preview", "stopped", "failed", "done"):
        Import.objects.update(status=status)
        html = client.get(page).content.decode()
        assert ("The file is deleted, and its text with it" in html) == (status != "done"), status
        assert "(without a text)" not in html, status


def test_why_a_line_is_refused_is_stored_in_english_and_said_in_the_readers_language(
    cast: Cast, pseudo_language: str
) -> None:
    imported = uploaded(
        cast.owner, file_of("{", chat(workspace="ws_9"), memory(agent="agent_9", scope="agent"))
    )
    reasons = set(imported.rows.exclude(reason="").values_list("reason", flat=True))
    assert "its assistant is not in the file or was refused" in reasons, reasons
    api = Api(cast.owner)
    api.client.defaults["HTTP_ACCEPT_LANGUAGE"] = pseudo_language
    wanted = {f"{OPEN}{reason}{CLOSED}" for reason in reasons}
    page = unescape(api.client.get(f"/imports/{imported.public_id}/").content.decode())
    assert all(reason in page for reason in wanted)
    rows = api.get(f"imports/{imported.public_id}/rows").json()["items"]
    assert {row["reason"] for row in rows if row["reason"]} == wanted
    Import.objects.update(status="failed", error="It was never read.")
    assert (
        f"{OPEN}It was never read.{CLOSED}"
        in api.client.get(f"/imports/{imported.public_id}/").content.decode()
    )
    assert api.get(f"imports/{imported.public_id}").json()["error"] == f"{OPEN}It was never read.{CLOSED}"


@pytest.mark.django_db(transaction=True)
async def test_over_asgi_no_piece_waits_for_the_next(cast: Cast) -> None:
    client = AsyncClient()
    await client.aforce_login(cast.owner)
    response: Any = await client.get("/export/")
    assert response.is_async
    pieces = [piece async for piece in response.streaming_content]
    assert len(pieces) == 2 and pieces[0].startswith(b'{"type":"memoryhub"')


def queries(act: Callable[[], Any]) -> int:
    with CaptureQueriesContext(connection) as captured:
        act()
    return len(captured)


def test_looking_and_storing_cost_the_same_for_few_lines_and_for_many(cast: Cast) -> None:
    def costs(number: int, of: str) -> list[int]:
        ids = [f"chat_{of}{n:023}" for n in range(number)]
        lines = [chat(id=public_id, created_by="eddie") for public_id in ids]
        for n, public_id in enumerate(ids):
            asked = f"msg_{of}{n:023}"
            lines.append(message(id=asked, of=public_id, author="vera"))
            answer = f"msg_{of.lower()}{n:023}"
            lines.append(message(id=answer, of=public_id, role="assistant", reply_to=asked))
            source = {"source_chat_id": public_id, "source_message_id": asked}
            lines.append(memory(f"{of} {n} owns a boat", id=f"mem_{of}{n:023}", author="eddie", **source))
        imported = import_jobs.begin(
            cast.owner, workspace=cast.workspace, filename="", pieces=[file_of(*lines)], now=timezone.now()
        )
        looking = queries(lambda: import_jobs.advance(imported.pk, seconds=60))
        import_jobs.start(imported, now=timezone.now())
        storing = queries(lambda: import_jobs.advance(imported.pk, seconds=60))
        imported.refresh_from_db()
        assert imported.status == ImportStatus.DONE and imported.outcomes["memory"]["new"] == number
        return [looking, storing]

    costs(2, "A")
    few, many = costs(3, "B"), costs(60, "C")
    assert all(more <= less + 2 for less, more in zip(few, many, strict=True)), (few, many)


def test_the_rows_of_a_finished_import_lead_to_what_came_in(cast: Cast) -> None:
    kept = make_memory("The roof leaks", cast.editor, cast.workspace)
    lines = [
        chat(title="Summer <b>"),
        chat(2, title=""),
        memory("Bees dance"),
        memory("The roof leaks"),
        memory(SECRET),
    ]
    imported = imported_whole(cast.editor, file_of(*lines), cast.workspace)
    client, page = signed_in(cast.editor), f"/imports/{imported.public_id}/"

    def rows() -> list[str]:
        return text_of(client, page).split('<li class="row"')[1:]

    place, summer, untitled, bees, roof, secret = rows()
    assert ">Shared</a>" in place
    made = Chat.objects.get(title="Summer <b>")
    assert (
        f'href="/chats/{made.public_id}/"' in summer and "Summer &lt;b&gt;" in summer and "Stored" in summer
    )
    assert ">New chat</a>" in untitled and "find=Bees+dance" in bees
    assert ">The roof leaks</a>" in roof and "Already known" in roof
    assert "<a" not in secret and "Refused" in secret and SECRET not in secret
    for row in (summer, bees, roof):
        assert client.get(re.findall(r'href="([^"]*)"', row)[0]).status_code == 200
    told = client.get(f"/chat/api/imports/{imported.public_id}/rows").json()["items"]
    assert [row["became"] for row in told if row["duplicate_of"] == kept.public_id] == [""]
    assert [row["became"].split("_")[0] for row in told if row["outcome"] == "new"] == ["chat", "chat", "mem"]

    delete_memory(Memory.objects.get(content="Bees dance"), by=cast.editor, now=timezone.now())
    assert "No longer here" in rows()[3] and "Bees" not in rows()[3]
    cast.workspace.memberships.filter(user=cast.editor).delete()
    shown = text_of(client, page)
    assert "Summer" not in shown and "roof" not in shown, "nor is it to who left"


def test_what_was_left_out_of_an_import_leads_nowhere(cast: Cast) -> None:
    imported = uploaded(cast.editor, file_of(chat(title="Summer"), memory("Bees dance")), cast.workspace)
    import_jobs.start(imported, takes_chats=False, now=timezone.now())
    import_jobs.advance(imported.pk, seconds=60)
    shown = text_of(signed_in(cast.editor), f"/imports/{imported.public_id}/")
    assert "Bees dance" in shown and "Summer" not in shown and "To be stored" not in shown
