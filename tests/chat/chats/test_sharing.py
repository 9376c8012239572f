"""Public links to a chat: their content, readers and revocation."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.fixtures import Settings

from chat.chats import sharing
from chat.chats.services import delete_chat, forget_chat, set_private
from chat.models import Chat, Message, MessageRole, Run, ShareLink, ToolCall
from chat.turns.services import restore_version, supersede
from chat.views import sharing as share_views
from memories.forgetting.for_good import forget_memories
from memories.models import Memory, Receipt, ReceiptItem
from memories.writing.changing import restore_memory
from memories.writing.gate import delete_memory
from memoryhub.backup import dump
from memoryhub.errors import Invalid, NotFound
from memoryhub.monitoring.logs import without_keys
from tests.conftest import Cast, make_cast
from tests.factories import make_chat, make_memory, make_message
from workspaces.accounts.account_changes import delete_account
from workspaces.actions.workspaces import change_role, remove_member
from workspaces.models import AuditEvent, Membership, User, Workspace

pytestmark = pytest.mark.django_db
ANSWER = "The **sea** is calm [1].\n\n<script>alert(1)</script>"


def asked(chat: Chat, question: str, answer: str = "", *, by: User | None = None) -> Message:
    said = make_message(chat, question, author=by or chat.created_by)
    if not answer:
        return said
    at = timezone.now()
    return make_message(
        chat, answer, role=MessageRole.ASSISTANT, reply_to=said, created_at=at, finished_at=at
    )


def link_to(chat: Chat, by: User | None = None, days: int | None = None) -> str:
    _link, token = sharing.create_link(chat, days=days, by=by or chat.created_by, now=timezone.now())
    return f"/shared/{token}/"


def seen(address: str, **query: Any) -> str:
    """Return the page as an anonymous visitor sees it, or "" for a link that does not work."""
    response = Client().get(address, query)
    assert response.status_code in (200, 404), response.status_code
    return response.content.decode() if response.status_code == 200 else ""


def used(answer: Message, memory: Memory, by: User) -> None:
    receipt = Receipt.objects.create(
        message_id=answer.public_id, workspace=answer.chat.workspace, user=by, ranking="hybrid", threshold=0.3
    )
    ReceiptItem.objects.create(
        receipt=receipt, memory=memory, position=1, score=0.5, content=memory.content, used=True
    )


@pytest.fixture
def chat(cast: Cast) -> Chat:
    made = make_chat(cast.owner, cast.workspace, title="Our secret plan")
    asked(made, "How is the <b>sea</b>?", ANSWER)
    asked(made, "And the wind?", "Strong.", by=cast.editor)
    return made


def test_it_shows_what_was_said_and_nothing_else(cast: Cast, chat: Chat) -> None:
    User.objects.filter(pk=cast.owner.pk).update(username="olive@example.org", email="olive@example.org")
    answer = Message.objects.filter(role=MessageRole.ASSISTANT).first()
    assert answer is not None
    used(answer, make_memory("Olive keeps a boat at Kiel", cast.owner, cast.workspace), cast.owner)
    ToolCall.objects.create(
        message=answer, name="web_search", arguments={"query": "kiel tide"}, output="tide table"
    )
    address = link_to(chat)
    later = asked(chat, "Said afterwards")
    page = seen(address)
    assert (
        "<strong>sea</strong>" in page and "How is the &lt;b&gt;sea&lt;/b&gt;?" in page and "Strong." in page
    )
    assert "&lt;script&gt;alert" in page and "Person 2" in page
    hidden = [
        "olive",
        "eddie",
        "Kiel",
        "tide",
        "secret plan",
        later.content,
        chat.public_id,
        "csrf",
        "<script",
    ]
    assert [word for word in hidden if word in page] == []
    link = ShareLink.objects.get()
    assert link.last_opened_at is not None and address.split("/")[2] not in str(ShareLink.objects.values())


def test_what_the_answer_says_to_browsers_proxies_and_robots(chat: Chat) -> None:
    address = link_to(chat)
    signed_in = Client()
    signed_in.force_login(chat.created_by)
    for client, path in ((Client(), address), (signed_in, address), (Client(), "/shared/mhl_wrong/")):
        for response in (client.get(path), client.head(path)):
            headers = response.headers
            assert headers["Referrer-Policy"] == "no-referrer" and "no-store" in headers["Cache-Control"]
            assert headers["X-Robots-Tag"].startswith("noindex") and headers["X-Frame-Options"] == "DENY"
            policy = headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy and "script-src" not in policy and "unsafe" not in policy
            assert not response.cookies and "Access-Control-Allow-Origin" not in headers
    for method in ("post", "put", "delete", "options"):
        response = getattr(Client(), method)(address)
        assert response.status_code == 405 and b"sea" not in response.content
    same = [client.get(address).content for client in (Client(), signed_in)]
    assert same[0] == same[1], "who is signed in reads the same"


def test_tokens_cannot_be_guessed_bent_or_tried_without_end(
    chat: Chat, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    address = link_to(chat)
    token = address.split("/")[2]
    link = ShareLink.objects.get()
    for wrong in (
        token.swapcase(),
        token[:-1],
        token + "0",
        "mhl_%00",
        token[:-1] + "é",
        link.token_hash,
        link.public_id,
        "x" * 5000,
        "..",
        "%27%20OR%201=1--",
    ):
        assert Client().get(f"/shared/{wrong}/").status_code == 404, wrong
    for start in ("-1", "99", "1e9", "²", "9" * 400, "'"):
        assert Client().get(address, {"from": start}).status_code == 404, start
    assert token not in caplog.text and token not in without_keys(f"Not Found: {address}")
    monkeypatch.setattr(share_views, "READS", 3)
    monkeypatch.setattr(share_views.time, "time", lambda: 1e9)
    for source in ("192.0.2.9", "2001:db8::"):
        got = [Client(REMOTE_ADDR=source.replace("::", f"::{n}")).get(address).status_code for n in range(5)]
        assert got == [200, 200, 200, 429, 429]


def _leave(cast: Cast, chat: Chat) -> None:
    remove_member(cast.workspace, user=cast.editor, by=cast.owner)


CLOSERS: dict[str, Callable[[Cast, Chat], Any]] = {
    "expired": lambda cast, chat: ShareLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1)),
    "deleted": lambda cast, chat: delete_chat(chat, by=cast.owner, now=timezone.now()),
    "forgotten": lambda cast, chat: forget_chat(chat, by=cast.owner, now=timezone.now()),
    "private": lambda cast, chat: set_private(chat, is_private=True, by=cast.owner, now=timezone.now()),
    "maker removed": _leave,
    "maker a viewer": lambda cast, chat: change_role(
        cast.workspace, user=cast.editor, role="viewer", by=cast.owner
    ),
    "maker inactive": lambda cast, chat: User.objects.filter(pk=cast.editor.pk).update(is_active=False),
    "maker deleted": lambda cast, chat: delete_account(cast.editor),
    "owner forbids": lambda cast, chat: Workspace.objects.update(share_links=False),
    "stays here": lambda cast, chat: Workspace.objects.update(local_only=True),
    "temporary": lambda cast, chat: Chat.objects.update(is_temporary=True),
}


def test_what_closes_a_link_does_so_at_once_and_soon_for_good(cast: Cast, chat: Chat) -> None:
    address = link_to(chat, by=cast.editor)
    for how, close in CLOSERS.items():
        with transaction.atomic():
            assert "sea" in seen(address), how
            editor = User.objects.get(pk=cast.editor.pk)  # the object of a deleted user has no key
            close(replace(cast, editor=editor), Chat.objects.get(pk=chat.pk))
            assert seen(address) == "", how
            sharing.sweep(now=timezone.now())
            assert not ShareLink.objects.exists(), f"what is undone later opens nothing again: {how}"
            transaction.set_rollback(True)


def test_links_that_close_with_a_private_chat_stand_in_the_activity(cast: Cast, chat: Chat) -> None:
    for _ in range(2):
        link_to(chat, by=cast.editor)
    set_private(chat, is_private=True, by=cast.owner, now=timezone.now())
    event = AuditEvent.objects.get(verb="link_closed")
    assert (event.workspace_id, event.by_name, event.target) == (
        cast.workspace.public_id,
        "olive",
        chat.public_id,
    )
    assert event.details == {"links": 2}
    set_private(chat, is_private=False, by=cast.owner, now=timezone.now())
    set_private(chat, is_private=True, by=cast.owner, now=timezone.now())
    assert AuditEvent.objects.filter(verb="link_closed").count() == 1, "none was there to close"


def test_the_operator_switches_links_off(cast: Cast, chat: Chat, settings: Settings) -> None:
    address = link_to(chat)
    settings.SHARE_LINKS = False
    assert seen(address) == ""
    with pytest.raises(Invalid, match="switched off on this server"):
        link_to(chat)


def test_what_is_set_aside_is_gone_and_what_was_never_shared_does_not_come(cast: Cast, chat: Chat) -> None:
    last = asked(chat, "Where is the key?", "Under the mat.")
    question = last.reply_to
    assert question is not None
    never = make_message(chat, "In the safe, code 4417.", role=MessageRole.ASSISTANT, reply_to=question)
    supersede(chat.messages.filter(pk=never.pk), first=never, by=last, now=timezone.now())
    address = link_to(chat)
    assert "Under the mat" in seen(address) and "4417" not in seen(address)
    restore_version(never, by=cast.owner, now=timezone.now())
    page = seen(address)
    assert "4417" not in page and "Under the mat" not in page and "Where is the key" in page
    assert "not shown here" in page
    Message.objects.filter(content="Strong.").update(
        content="Strong. And the code is 4417.", finished_at=timezone.now() + timedelta(seconds=1)
    )
    assert "4417" not in seen(address), "what was written on is not what was shared"
    link = ShareLink.objects.get()
    Message.objects.update(finished_at=timezone.now() - timedelta(minutes=1))
    sharing.update_link(link, by=cast.owner, now=timezone.now())
    assert "In the safe" in seen(address)


def test_the_title_says_nothing_that_was_not_shared(cast: Cast, chat: Chat) -> None:
    address = link_to(chat)
    Chat.objects.update(title="Fire Eddie in May")
    assert "Eddie" not in seen(address) and '<h1 dir="auto">How is the' in seen(address)


def test_answers_from_personal_memories_are_left_out_even_once_those_are_forgotten(cast: Cast) -> None:
    own = make_memory("Olive takes lithium", cast.owner, cast.workspace, scope="user")
    addresses = {}
    for how in ("receipt", "tool", "private run"):
        chat = make_chat(cast.owner, cast.workspace)
        answer = asked(chat, "What may I drink?", "With lithium, little.")
        if how == "receipt":
            used(answer, own, cast.owner)
        elif how == "tool":
            ToolCall.objects.create(message=answer, name="x_recall_memory", memory_ids=[own.public_id])
        else:
            Run.objects.create(
                workspace=cast.workspace, user=cast.owner, mode="loop", objective="Drinks", answer=answer,
                is_private=True, status="done", deadline_at=timezone.now(),
            )  # fmt: skip
        addresses[how] = link_to(chat, by=cast.editor)
        page = seen(addresses[how])
        assert "What may I drink?" in page and "lithium" not in page, how
    forget_memories([own], by=cast.owner, now=timezone.now())
    assert [how for how, address in addresses.items() if "lithium" in seen(address)] == []


def test_answers_after_a_personal_one_are_shown_only_if_who_shares_says_so(cast: Cast, chat: Chat) -> None:
    """Later answers had the personal one in their prompt and may repeat it in other words."""
    personal = asked(chat, "What may I drink?", "With lithium, little.")
    used(personal, make_memory("Takes lithium", cast.owner, cast.workspace, scope="user"), cast.owner)
    asked(chat, "And on Sundays?", "The same, with that medicine.")
    shared, client = link_to(chat), Client()
    page = seen(shared)
    assert "And on Sundays?" in page and "medicine" not in page and "lithium" not in page and "sea" in page
    client.force_login(cast.owner)
    assert "after that as well" in client.get(f"/chats/{chat.public_id}/links/").content.decode()
    links = f"/chat/api/chats/{chat.public_id}/links"
    body = {"days": 7, "include_later": True}
    told = (
        client.post(links, body, content_type="application/json")
        .json()["url"]
        .removeprefix("http://testserver")
    )
    assert "medicine" in seen(told) and "lithium" not in seen(told)
    asked(chat, "Why?", "Because of the medicine, still.")
    for link in ShareLink.objects.all():
        sharing.update_link(link, by=cast.owner, now=timezone.now())
    assert "still" in seen(told) and "medicine" not in seen(shared), "each as its maker said"
    client.post(f"/chats/{chat.public_id}/links/make/", {"days": "7", "later": "on"})
    by_rest, by_page = ShareLink.objects.order_by("pk")[1:3]
    assert by_page.message_ids == by_rest.message_ids


def test_forgetting_a_memory_takes_what_was_said_of_it(cast: Cast, chat: Chat) -> None:
    answer = asked(chat, "Who pays?", "Anna pays.")
    fact = make_memory("Anna pays", cast.owner, cast.workspace)
    used(answer, fact, cast.owner)
    address = link_to(chat)
    said = Message.objects.get(content="And the wind?")
    source = {"source_chat_id": chat.public_id, "source_message_id": said.public_id}
    noticed = make_memory("Olive sails in the wind", cast.owner, cast.workspace, **source)
    assert "Anna pays" in seen(address) and "And the wind?" in seen(address)
    delete_memory(fact, by=cast.owner, now=timezone.now())
    assert "Anna pays" not in seen(address)
    restore_memory(fact, by=cast.owner, now=timezone.now())
    assert "Anna pays" in seen(address), "undone at once"
    forget_memories([fact], by=cast.owner, now=timezone.now())
    assert "Anna pays" not in seen(address)
    delete_memory(noticed, by=cast.owner, now=timezone.now())
    assert "And the wind?" not in seen(address), "also where it was noticed after sharing"
    sharing.sweep(now=timezone.now())
    Memory.objects.all().delete()
    assert "And the wind?" not in seen(address), "nor once the row is purged"


def test_the_sweep_asks_the_same_of_one_link_and_of_many(cast: Cast) -> None:
    """Each link loses what was forgotten in its own chat, and nothing else."""
    forgotten: dict[str, list[Memory]] = {}
    for name in "abc":
        chat = make_chat(cast.owner, cast.workspace)
        said, fact = asked(chat, f"Said {name}"), make_memory(f"Fact {name}", cast.owner, cast.workspace)
        used(asked(chat, f"Asked {name}", f"Answered {name}"), fact, cast.owner)
        source = {"source_chat_id": chat.public_id, "source_message_id": said.public_id}
        forgotten[name] = [fact, make_memory(f"Noticed {name}", cast.owner, cast.workspace, **source)]
        link_to(chat)
    for memory in forgotten["a"] + forgotten["b"][:1]:
        delete_memory(memory, by=cast.owner, now=timezone.now())
    sharing.sweep(now=timezone.now())
    left = [
        set(Message.objects.filter(pk__in=link.message_ids).values_list("content", flat=True))
        for link in ShareLink.objects.order_by("pk")
    ]
    assert left == [{"Asked a"}, {"Said b", "Asked b"}, {"Said c", "Asked c", "Answered c"}]
    numbers = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            sharing.sweep(now=timezone.now())
        numbers.append(len(queries))
        ShareLink.objects.exclude(pk=ShareLink.objects.latest("pk").pk).delete()
    assert numbers[0] == numbers[1]


def test_who_may_share_what(cast: Cast, chat: Chat) -> None:
    private = make_chat(cast.owner, cast.workspace, is_private=True)
    asked(private, "Mine")
    passing = make_chat(cast.owner, cast.workspace, is_temporary=True)
    asked(passing, "Passing")
    assert "Mine" in seen(link_to(private)), "its own creator's to share"
    with pytest.raises(NotFound):
        link_to(private, by=cast.editor)
    with pytest.raises(Invalid, match="temporary"):
        link_to(passing)
    with pytest.raises(Invalid, match="nothing in this chat"):
        link_to(make_chat(cast.owner, cast.workspace))
    for days in (0, -1, 8, 10**9):
        with pytest.raises(Invalid):
            link_to(chat, days=days)
    client = Client()
    client.force_login(cast.editor)
    theirs = f"/chat/api/chats/{chat.public_id}/links"
    made = client.post(theirs, {"days": 7}, content_type="application/json").json()
    assert made["url"].startswith("http://testserver/shared/mhl_") and made["made_by"]["username"] == "eddie"
    assert seen(made["url"].removeprefix("http://testserver"))
    link_to(chat, by=cast.owner)
    listed = client.get(f"/chat/api/workspaces/{cast.workspace.public_id}/links").json()["items"]
    assert [link["made_by"]["username"] for link in listed] == ["olive", "eddie"], (
        "the private one is not theirs"
    )
    assert "url" not in listed[0] and client.delete(f"{theirs}/{listed[0]['id']}").status_code == 403
    assert client.delete(f"{theirs}/{made['id']}").status_code == 204
    assert seen(made["url"].removeprefix("http://testserver")) == ""


def test_a_long_chat_is_read_page_by_page(cast: Cast, chat: Chat, django_assert_max_num_queries: Any) -> None:
    Message.objects.bulk_create(
        Message(chat=chat, role=MessageRole.USER, author=cast.owner, content=f"Line {number}.")
        for number in range(300)
    )
    address = link_to(chat)
    with django_assert_max_num_queries(30):
        first = seen(address)
    assert "Line 10." in first and "Line 100." not in first and "?from=60" in first
    assert "Line 299." in seen(address, **{"from": "300"}) and '<h1 dir="auto">A shared chat' in seen(
        address, **{"from": "60"}
    )


def test_the_menu_makes_one_and_closes_it(cast: Cast, chat: Chat) -> None:
    editor = Client()
    editor.force_login(cast.editor)
    menu = f"/chats/{chat.public_id}/links/"
    assert "Create and copy link" in editor.get(menu).content.decode()
    made = editor.post(f"{menu}make/", {"days": "7"}).content.decode()
    address = made.split('data-copy="http://testserver')[1].split('"')[0]
    assert "sea" in seen(address) and "Created by you" in made and "never opened" in made
    assert address not in editor.get(menu).content.decode()
    link = ShareLink.objects.get()
    assert "Turn off link" not in _as(cast.viewer).get(menu).content.decode()
    assert (
        "Turn off link"
        in _as(cast.owner).get(f"/workspaces/{cast.workspace.public_id}/links/").content.decode()
    )
    assert editor.post(f"{menu}make/", {"days": "forever"}).status_code == 422
    closed = editor.post(f"{menu}{link.public_id}/close/").content.decode()
    assert "The link is turned off" in closed and seen(address) == ""


def _as(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def test_paper_shows_what_the_reader_may_see(cast: Cast, chat: Chat) -> None:
    page_of = f"/chats/{chat.public_id}/print/"
    page = _as(cast.viewer).get(page_of).content.decode()
    assert "<strong>sea</strong>" in page and "Our secret plan" in page and "window.print" not in page
    where = f"/chat/api/chats/{chat.public_id}/export"
    said = json.loads(b"".join(_as(cast.viewer).get(f"{where}?format=json")))  # type: ignore[arg-type]
    assert [each["content"] for each in said["messages"]][2:] == ["And the wind?", "Strong."]
    assert b"## Answer" in b"".join(_as(cast.viewer).get(where))  # type: ignore[arg-type]
    assert _as(cast.viewer).get(f"{where}?format=pdf").status_code == 422
    chat.is_private = True
    chat.save()
    assert [_as(cast.viewer).get(each).status_code for each in (where, page_of)] == [404, 404]


@pytest.mark.django_db(transaction=True)
def test_made_while_it_turns_private_no_link_of_others_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    cast = make_cast()
    monkeypatch.setattr(sharing, "MOST_LINKS", 2)
    chat = make_chat(cast.owner, cast.workspace)
    make_message(chat, "Hello")

    def make(number: int) -> bool:
        try:
            if number == 4:
                set_private(Chat.objects.get(pk=chat.pk), is_private=True, by=cast.owner, now=timezone.now())
            else:
                sharing.create_link(chat, days=None, by=cast.editor, now=timezone.now())
            return True
        except (Invalid, NotFound):
            return False
        finally:
            connections.close_all()

    with ThreadPoolExecutor(5) as threads:
        made = list(threads.map(make, range(5)))
    assert made[4] and sum(made[:4]) <= 2
    assert not ShareLink.objects.exists() and Membership.objects.filter(workspace=cast.workspace).count() == 3


@pytest.mark.django_db(transaction=True)
def test_a_restored_backup_opens_no_link_that_was_closed_since() -> None:
    cast = make_cast()
    chat = make_chat(cast.owner, cast.workspace)
    asked(chat, "Hello")
    kept = link_to(chat)
    said: list[str] = []
    with transaction.atomic():  # written directly, not by the product: as if it came with a restored backup
        closed = link_to(chat)
        with dump.connect() as outside:
            sharing.close_again(outside, said.append)
    assert seen(kept) and not seen(closed) and said == ["1 links to chats were closed since"]
