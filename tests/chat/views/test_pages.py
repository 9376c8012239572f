"""The pages of the conversation: their contents, permissions and query counts."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import AsyncClient
from django.urls import reverse
from django.utils import timezone

from chat.models import Chat, Message, MessageRole, MessageStatus
from chat.views.shown_messages import WINDOW
from chat.views.workspace_search import marked
from memories.forgetting.for_good import forget_memories
from memories.models import Extraction, Memory
from memories.recalling.ranked_search import Recalled
from memories.recalling.recall import Recall, store_receipt
from tests.conftest import Cast
from tests.factories import make_chat, make_memory, make_message, make_user
from tests.signing_in import signed_in
from workspaces.access import default_workspace
from workspaces.models import User

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.fixture(autouse=True)
def launched(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Record the answers that pages begin, without running them."""
    begun: list[int] = []
    monkeypatch.setattr("chat.turns.turn.start", lambda answer, user_pk: begun.append(answer.pk))
    yield begun


def answer(chat: Chat, question: Message, **fields: Any) -> Message:
    fields = {"content": "Noted.", "status": MessageStatus.DONE} | fields
    return make_message(chat, role=MessageRole.ASSISTANT, reply_to=question, **fields)


def url(name: str, *args: object) -> str:
    return reverse(f"chat:{name}", args=args)


def test_home_leads_to_the_own_workspace_and_later_to_the_last_one(cast: Cast) -> None:
    client = signed_in(cast.owner)
    assert client.get("/").url == url("workspace", cast.owner.default_workspace.public_id)  # type: ignore[attr-defined]
    client.get(url("workspace", cast.workspace.public_id))
    assert client.get("/").url == url("workspace", cast.workspace.public_id)  # type: ignore[attr-defined]


def test_menus_are_short_and_offer_nothing_that_cannot_be_undone(cast: Cast) -> None:
    """A chat's menu has five entries at most in any state, and forgetting for good is in none of the first level."""
    chat = make_chat(cast.owner, cast.workspace)
    make_memory("The house is blue", cast.owner, cast.workspace)
    client = signed_in(cast.owner)
    html = client.get(url("chat", chat.public_id)).content.decode()
    menu = html.split('<template id="chat-menu">')[1].split("</template>")[0]
    entries = re.findall(r'class="menu__item[^"]*"\s*(?:data-(if|unless)="(\w+)")?', menu)
    for state in ({"deletable"}, {"deletable", "pinned"}, {"deletable", "archived"}):
        shown = [kind for kind, name in entries if not kind or (name in state) == (kind == "if")]
        assert 4 <= len(shown) <= 5
    panel = client.get(
        reverse("memories:panel", args=[cast.workspace.public_id]), headers=HTMX
    ).content.decode()
    assert "The house is blue" in panel and "for good" not in panel + html


def test_a_notice_that_was_dismissed_stays_away_in_every_workspace(cast: Cast, settings: Any) -> None:
    settings.EMBEDDED_MODEL, settings.LLM_BASE_URL, settings.LLM_CAN_EXTRACT = True, "", False
    client = signed_in(cast.owner)
    pages = [url("workspace", each.public_id) for each in (cast.workspace, default_workspace(cast.owner))]
    assert ["built-in model is small" in client.get(page).content.decode() for page in pages] == [True, True]
    client.cookies["dismissed"] = "first-steps.small-model"
    assert ["built-in model is small" in client.get(page).content.decode() for page in pages] == [
        False,
        False,
    ]


def test_the_question_about_memory_is_asked_until_it_is_answered(cast: Cast) -> None:
    client = signed_in(cast.owner)
    page = url("workspace", cast.workspace.public_id)
    assert "May I remember" in client.get(page).content.decode()
    client.post(reverse("workspaces:memory_default"), {"memory": "on"})
    html = client.get(page).content.decode()
    assert "May I remember" not in html
    assert 'value="on"' in html and "checked" in html
    cast.owner.refresh_from_db()
    assert cast.owner.memory_default is True


def test_the_first_message_makes_the_chat(
    cast: Cast, launched: list[int], django_capture_on_commit_callbacks: Any
) -> None:
    client = signed_in(cast.editor)
    with django_capture_on_commit_callbacks(execute=True):
        response = client.post(
            url("create", cast.workspace.public_id), {"content": "Hello there", "memory": "on"}, headers=HTMX
        )
    chat = Chat.objects.get()
    assert (chat.title, chat.memory_enabled) == ("Hello there", True)
    assert response["HX-Push-Url"] == url("chat", chat.public_id)
    html = response.content.decode()
    assert "Hello there" in html and "data-stream=" in html
    assert launched == [chat.messages.last().pk]  # type: ignore[union-attr]


def test_a_blank_first_message_leaves_no_chat_behind(cast: Cast) -> None:
    for blank in (" ", "\u200b", "\u200e \u00ad\n\ufeff"):
        response = signed_in(cast.editor).post(
            url("create", cast.workspace.public_id), {"content": blank}, headers=HTMX
        )
        assert response.status_code == 422
        assert "Write a message first." in response.content.decode()
        assert not Chat.objects.exists()


def test_sending_returns_the_bubble_and_an_answer_that_opens_its_stream(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace, title="Plans")
    response = signed_in(cast.owner).post(url("send", chat.public_id), {"content": "<b>Hi</b>"}, headers=HTMX)
    html = response.content.decode()
    written = chat.messages.get(role=MessageRole.ASSISTANT)
    assert "&lt;b&gt;Hi&lt;/b&gt;" in html
    assert url("stream", chat.public_id, written.public_id) in html
    assert 'hx-swap-oob="true"' in html
    assert response["HX-Trigger"] == "chats:changed"


def test_the_composer_works_without_scripts_too(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    client = signed_in(cast.owner)
    assert (
        f'action="{url("send", chat.public_id)}"' in client.get(url("chat", chat.public_id)).content.decode()
    )
    response = client.post(url("send", chat.public_id), {"content": "Hi"})
    assert response.url == url("chat", chat.public_id)  # type: ignore[attr-defined]


def test_answer_cut_short_keeps_its_text_and_offers_a_retry(cast: Cast) -> None:
    for fields, sentence in (
        ({"status": MessageStatus.STOPPED}, "Stopped. The text so far is kept."),
        ({"status": MessageStatus.FAILED, "error": "The model is away."}, "The model is away."),
        (
            {"status": MessageStatus.STREAMING, "beat_at": timezone.now() - timedelta(hours=1)},
            "The server stopped in the middle",
        ),
    ):
        chat = make_chat(cast.owner, cast.workspace)
        cut = answer(chat, make_message(chat, "Why?"), content="Because the", **fields)
        html = signed_in(cast.owner).get(url("chat", chat.public_id)).content.decode()
        assert "Because the" in html and sentence in html, sentence
        assert url("retry", chat.public_id, cut.public_id) in html, sentence
        assert "data-stream=" not in html, sentence


def test_a_viewer_reads_without_controls_that_would_be_refused(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace, title="Shared")
    written = answer(chat, make_message(chat, "Question"), status=MessageStatus.FAILED, error="No.")
    html = signed_in(cast.viewer).get(url("chat", chat.public_id)).content.decode()
    assert "Question" in html and cast.owner.username in html
    for name in ("send", "rename", "delete", "memory"):
        assert f'"{url(name, chat.public_id)}"' not in html
    for name in ("retry", "remember"):
        assert url(name, chat.public_id, written.public_id) not in html


def test_a_long_chat_shows_its_end_and_the_rest_on_demand(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    for number in range(WINDOW + 5):
        make_message(chat, f"message number {number}.")
    client = signed_in(cast.owner)
    html = client.get(url("chat", chat.public_id)).content.decode()
    assert "message number 5." in html and "message number 4." not in html
    first = chat.messages.order_by("pk")[5]
    earlier = client.get(url("transcript", chat.public_id), {"before": first.public_id}).content.decode()
    assert "message number 0." in earlier and "message number 4." in earlier
    assert "message number 5." not in earlier and "Show earlier" not in earlier


def test_remember_this_confirms_counts_and_can_be_undone(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    message = make_message(chat, "The key is under the mat")
    client = signed_in(cast.editor)
    response = client.post(url("remember", chat.public_id, message.public_id), headers=HTMX)
    memory = Memory.objects.get()
    html = response.content.decode()
    assert "Remembered" in html and 'id="memory-count"' in html and "1<span" in html
    assert response["HX-Trigger"] == "memories:changed"
    undo = reverse("memories:delete", args=[cast.workspace.public_id, memory.public_id]) + "?as=message"
    assert undo in html
    again = client.post(url("remember", chat.public_id, message.public_id), headers=HTMX).content.decode()
    assert "Already remembered" in again and 'data-find="The key is under the mat"' in again
    undone = client.post(undo, headers=HTMX).content.decode()
    assert "Remember this" in undone and url("remember", chat.public_id, message.public_id) in undone
    assert not Memory.objects.live().exists()


def test_a_wish_to_remember_is_answered_where_memory_is_off(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    wish = make_message(chat, "Remember that I am allergic to peanuts.")
    answer(chat, wish)
    page, hint = url("chat", chat.public_id), "Memory is off in this chat, so this was not saved."
    client = signed_in(cast.owner)
    assert hint in client.get(page).content.decode()
    assert hint not in signed_in(cast.editor).get(page).content.decode()
    client.post(url("remember", chat.public_id, wish.public_id), headers=HTMX)
    assert hint not in client.get(page).content.decode()


def test_the_receipt_line_says_what_was_used_and_saved(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    question = make_message(chat, "When?")
    written = answer(chat, question)
    memory = make_memory("It is on Monday", cast.owner, cast.workspace)
    make_memory(
        "Noticed", cast.owner, cast.workspace, source_type="auto_chat", source_message_id=question.public_id
    )
    store_receipt(
        written.public_id,
        Recall([Recalled(memory, 0.8, {"meaning": 0.8})]),
        [(True, "")],
        workspace=cast.workspace,
        user=cast.owner,
        threshold=0.3,
    )
    html = signed_in(cast.owner).get(url("message", chat.public_id, written.public_id)).content.decode()
    assert "Used 1 memory" in html and "saved 1" in html
    assert reverse("memories:receipt", args=[written.public_id]) in html


def test_memories_that_could_not_be_saved_are_said_to_their_person_with_retry(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    written = answer(chat, make_message(chat, "We meet on Monday"), memory_enabled=True)
    turn: dict[str, Any] = {
        "workspace": cast.workspace,
        "chat_id": chat.public_id,
        "next_attempt_at": timezone.now(),
    }
    failed = Extraction.objects.create(
        **turn,
        user=cast.owner,
        message_id=written.public_id,
        source_type="auto_chat",
        status="failed",
        error="Gone.",
    )
    page, save_again = (url(name, chat.public_id, written.public_id) for name in ("message", "save_again"))
    assert "could not be saved" not in signed_in(cast.editor).get(page).content.decode()
    client = signed_in(cast.owner)
    html = client.get(page).content.decode()
    assert "could not be saved" in html and save_again in html
    assert "not saved yet" in client.post(save_again, headers=HTMX).content.decode()
    failed.refresh_from_db()
    assert (failed.status, failed.attempts) == ("pending", 0)


@pytest.mark.parametrize(
    ("way", "now_said"),
    [("tidy_forget", "since merged"), ("tidy_replace", "since replaced"), ("delete", "since forgotten")],
)
def test_a_receipt_still_says_what_was_used_after_it_is_gone(cast: Cast, way: str, now_said: str) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    written = answer(chat, make_message(chat, "What is my dog called?"))
    used = make_memory("My dog is Biscuit", cast.owner, cast.workspace)
    newer = make_memory("My dog is Waffle", cast.owner, cast.workspace)
    found, verdicts = Recall([Recalled(used, 0.8, {"meaning": 0.8})]), [(True, "")]
    people = {"workspace": cast.workspace, "user": cast.owner}
    store_receipt(written.public_id, found, verdicts, **people, threshold=0.3)
    client = signed_in(cast.owner)
    of = [cast.workspace.public_id, *([used.public_id] if way == "delete" else [])]
    pair = {"memory": used.public_id, "into": newer.public_id}
    assert client.post(reverse(f"memories:{way}", args=of), pair).status_code == 200
    html = client.get(url("message", chat.public_id, written.public_id)).content.decode()
    receipt = client.get(reverse("memories:receipt", args=[written.public_id])).content.decode()
    assert "Used 1 memory" in html and now_said in receipt
    assert ("Biscuit" in receipt) is (way != "delete")
    if way == "tidy_forget":
        client.post(reverse("memories:delete", args=[cast.workspace.public_id, newer.public_id]))
        receipt = client.get(reverse("memories:receipt", args=[written.public_id])).content.decode()
        assert "since forgotten" in receipt and "Biscuit" not in receipt
        forget_memories([newer], by=cast.owner, now=timezone.now())
        assert not Memory.objects.exists(), "what was merged into it is removed too"


def test_memory_from_a_private_or_temporary_chat_is_personal(cast: Cast) -> None:
    for kind in ("is_private", "is_temporary"):
        Memory.objects.all().delete()
        chat = make_chat(cast.owner, cast.workspace, **{kind: True})
        message = make_message(chat, "The code of the gate is on the blue card")
        html = signed_in(cast.owner).post(url("remember", chat.public_id, message.public_id)).content.decode()
        assert "Remembered, only for you" in html, kind
        memory = Memory.objects.get()
        assert (memory.scope, memory.owner, memory.workspace) == (
            "user",
            cast.owner,
            cast.owner.default_workspace,
        ), kind
        assert not Memory.objects.visible_to(cast.editor).exists(), kind


def test_the_sidebar_groups_by_day_searches_titles_and_pages(cast: Cast) -> None:
    now = timezone.now()
    for number in range(45):
        when = now - timedelta(days=number)
        make_chat(cast.owner, cast.workspace, title=f"Chat {number:02}", active_at=when)
    make_chat(cast.stranger, title="Chat of a stranger")
    make_chat(cast.editor, cast.workspace, title="Chat of mine alone", is_private=True)
    client = signed_in(cast.owner)
    listed = url("chat_list", cast.workspace.public_id)
    html = client.get(listed).content.decode()
    assert html.index("Today") < html.index("Chat 00") < html.index("Yesterday") < html.index("Chat 01")
    assert "stranger" not in html and "mine alone" not in html
    assert "Chat 39" in html and "Chat 40" not in html
    last = Chat.objects.get(title="Chat 39")
    more = client.get(listed, {"before": last.public_id}).content.decode()
    assert "Chat 40" in more and "Chat 39" not in more
    found = client.get(listed, {"q": "chat 07"}).content.decode()
    assert "Chat 07" in found and "Chat 08" not in found
    assert "No title or message matches" in client.get(listed, {"q": "100%"}).content.decode()


def test_rename_delete_and_undo_from_the_sidebar(cast: Cast) -> None:
    chat = make_chat(cast.editor, cast.workspace, title="Before")
    client = signed_in(cast.editor)
    assert (
        "After"
        in client.post(url("rename", chat.public_id), {"title": "After"}, headers=HTMX).content.decode()
    )
    deleted = client.post(url("delete", chat.public_id), headers=HTMX).content.decode()
    assert url("restore", chat.public_id) in deleted and "Undo" in deleted
    assert client.get(url("chat", chat.public_id)).status_code == 404
    assert "Restored “" in client.post(url("restore", chat.public_id), headers=HTMX).content.decode()
    assert client.get(url("chat", chat.public_id)).status_code == 200


def test_deleting_the_chat_on_screen_leads_away_with_an_undo(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace, title="Here")
    client = signed_in(cast.owner)
    here = f"http://testserver{url('chat', chat.public_id)}"
    response = client.post(url("delete", chat.public_id), headers=HTMX | {"HX-Current-URL": here})
    assert response["HX-Redirect"] == url("workspace", cast.workspace.public_id)
    assert url("restore", chat.public_id) in client.get(response["HX-Redirect"]).content.decode()


def test_the_chip_is_kept_with_the_chat(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    client = signed_in(cast.owner)
    assert (
        "checked"
        in client.post(url("memory", chat.public_id), {"memory": "on"}, headers=HTMX).content.decode()
    )
    assert "checked" not in client.post(url("memory", chat.public_id), headers=HTMX).content.decode()
    chat.refresh_from_db()
    assert chat.memory_enabled is False


@pytest.mark.django_db(transaction=True)
async def test_the_stream_goes_on_after_what_the_browser_has() -> None:
    from asgiref.sync import sync_to_async

    def make() -> tuple[User, Chat, Message]:
        user = make_user()
        chat = make_chat(user)
        return user, chat, answer(chat, make_message(chat, "Say it"), content="one two three")

    user, chat, written = await sync_to_async(make)()
    client = AsyncClient()
    await client.aforce_login(user)
    response = await client.get(
        url("stream", chat.public_id, written.public_id), headers={"Last-Event-ID": "4"}
    )
    assert response["Content-Type"] == "text/event-stream"
    body = b"".join([part async for part in response.streaming_content]).decode()  # type: ignore[attr-defined]
    assert 'id: 13\nevent: token\ndata: {"text": "two three"}' in body
    assert "event: done" in body


def test_words_of_a_query_are_marked_in_text_alone() -> None:
    html = '<a href="/days">Days &amp; holidays</a>'
    assert marked(html, "day amp") == '<a href="/days"><mark>Day</mark>s &amp; holidays</a>'
