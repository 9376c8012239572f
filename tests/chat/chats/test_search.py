"""Search for chats by title and messages, within what the user may see; results are escaped."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat.chats.message_search import NEWEST, WORDS, matches_in, matching, pieces_of
from chat.models import Chat, Message, MessageRole, MessageStatus, MessageWords
from chat.turns.services import supersede
from tests.api import Api, error_of
from tests.conftest import Cast
from tests.factories import make_chat, make_message, make_user
from workspaces.models import User, Workspace

pytestmark = pytest.mark.django_db


def found(user: User, question: str) -> list[str]:
    within = Workspace.objects.visible_to(user).values_list("pk", flat=True)
    chats = matching(Chat.objects.visible_to(user).live().listed(), question, reader=user, within=within)
    return [chat.title for chat in chats]


@pytest.fixture
def chats(cast: Cast) -> dict[str, Chat]:
    texts = {
        "Quarterly plan": "The deadline moves to March-15, says Maria",
        "Dinner": "Risotto with mushrooms, no meat 100% sure",
        "日本旅行": "来週の木曜日に京都へ行きます",
    }
    made = {}
    for title, text in texts.items():
        made[title] = make_chat(cast.owner, cast.workspace, title=title)
        make_message(made[title], text)
    return made


def test_words_are_found_by_how_they_begin_and_else_by_parts(cast: Cast, chats: dict[str, Chat]) -> None:
    for question, expected in (
        ("deadline", ["Quarterly plan"]),
        ("DEADL mar", ["Quarterly plan"]),
        ("maria deadline", ["Quarterly plan"]),
        ("march-15", ["Quarterly plan"]),
        ("quart", ["Quarterly plan"]),
        ("plan quarterly", ["Quarterly plan"]),
        ("arterly", ["Quarterly plan"]),
        ("ushroom", ["Dinner"]),
        ("100%", ["Dinner"]),
        ("京都", ["日本旅行"]),
        ("旅行", ["日本旅行"]),
        ("deadline risotto", []),
        ("nothing of it", []),
        ("%", ["Dinner"]),
        ("_", []),
    ):
        assert found(cast.owner, question) == expected


def test_hostile_questions_find_nothing_and_break_nothing(cast: Cast, chats: dict[str, Chat]) -> None:
    client = Client()
    client.force_login(cast.owner)
    address = reverse("chat:chat_list", args=[cast.workspace.public_id])
    assert client.get(address, {"q": "a' | 'b &|!():*<->"}).status_code == 200
    assert client.get(address, {"q": "\x00"}).status_code == 404  # not allowed in an address
    for question in ("'", "a' | 'b", "&|!():*<->", "\\", "'':*", "it's", "\x00", "(" * 300, "🙂"):
        assert found(cast.owner, question) in ([], ["Quarterly plan"])


def test_only_what_a_person_may_see_is_found(cast: Cast) -> None:
    shared = make_chat(cast.owner, cast.workspace, title="Shared")
    private = make_chat(cast.owner, cast.workspace, title="Private", is_private=True)
    temporary = make_chat(cast.owner, cast.workspace, title="Temporary", is_temporary=True)
    deleted = make_chat(cast.owner, cast.workspace, title="Deleted", deleted_at=timezone.now())
    for chat in (shared, private, temporary, deleted):
        make_message(chat, "The zebra crossing")
    assert sorted(found(cast.owner, "zebra")) == ["Private", "Shared"]
    assert found(cast.editor, "zebra") == ["Shared"]
    assert found(cast.viewer, "zebra") == ["Shared"]
    assert found(cast.stranger, "zebra") == []
    assert found(cast.stranger, "ebra") == []


def test_what_was_set_aside_or_is_being_written_is_not_found(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace, title="Plans")
    old, new = make_message(chat, "The walrus"), make_message(chat, "The seal")
    supersede(chat.messages.filter(pk=old.pk), first=old, by=new, now=timezone.now())
    make_message(chat, "The otter", role=MessageRole.ASSISTANT, status=MessageStatus.STREAMING)
    assert found(cast.owner, "seal") == ["Plans"]
    assert found(cast.owner, "walrus") == []
    assert found(cast.owner, "otter") == []


def test_the_newest_place_is_shown_with_what_was_found_marked_and_nothing_executed(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace, title="Markup")
    make_message(chat, "zebra of old")
    newest = make_message(chat, f"{'word ' * 40}<script>alert(1)</script> the Zebra & zebras {'more ' * 60}")
    match = matches_in([chat], "zebra", reader=chat.created_by)[chat.pk]
    assert match.message_id == newest.public_id
    assert [match.text[start:end] for start, end in match.highlights] == ["Zebra", "zebra"]
    assert match.text.startswith("…") and match.text.endswith("…") and len(match.text) < 160
    client = Client()
    client.force_login(cast.owner)
    html = client.get(
        reverse("chat:chat_list", args=[cast.workspace.public_id]), {"q": "zebra"}
    ).content.decode()
    assert "<mark>Zebra</mark> &amp; <mark>zebra</mark>s" in html
    assert "<script>" not in html and "&lt;script&gt;" in html
    assert f"?at={newest.public_id}#{newest.public_id}" in html


def test_excerpt_begins_and_ends_with_whole_words() -> None:
    for question, shown in (
        ("peanuts", "…along: - bread and cheese - roasted peanuts for Anna - mushrooms"),
        ("ushroom", "…cheese - roasted peanuts for Anna - mushrooms and two"),
    ):
        said = f"For Saturday take along: - bread and cheese - roasted peanuts for Anna - mushrooms {'and two ' * 40}"
        text = "".join(piece for piece, _ in pieces_of(said, question))
        assert text.startswith(shown), question
        assert text.removesuffix("…").rsplit(maxsplit=1)[-1] in {"and", "two"}, question


def test_excerpt_without_blanks_is_cut_anywhere() -> None:
    for found in ("京都へ", "y" * 150):
        text = "".join(piece for piece, _ in pieces_of(f"{'木' * 90}{found}{'曜' * 200}", found))
        assert text.startswith("…木") and text.endswith("…") and len(text) == 152, found


def test_pieces_add_up_to_the_text() -> None:
    for question in ("", "   ", "!!!", "ß", "İ"):
        text = "Straße İstanbul STRASSE, and more"
        assert "".join(piece for piece, _ in pieces_of(text, question)) == text, question


def test_over_rest_chats_are_searched_in_pages(cast: Cast) -> None:
    for number in range(5):
        chat = make_chat(cast.owner, cast.workspace, title=f"Chat {number}")
        make_message(chat, f"Zebra number {number}")
    make_chat(cast.owner, cast.workspace, title="The zebra")
    pages = Api(cast.viewer).pages("chats", q="zebra", limit=2)
    assert [len(page) for page in pages] == [2, 2, 2]
    items = [item for page in pages for item in page]
    assert items[0]["match"] is None and items[0]["title"] == "The zebra"
    assert items[1]["match"]["text"] == "Zebra number 4"
    assert items[1]["match"]["highlights"] == [[0, 5]]
    assert Api(cast.stranger).get("chats?q=zebra").json()["items"] == []
    refused = Api(cast.viewer).get(f"chats?q={'x' * 201}")
    assert (refused.status_code, error_of(refused)["code"]) == (422, "invalid")
    cursor = Api(cast.viewer).get("chats?q=zebra&limit=2").json()["next_cursor"]
    assert Api(cast.viewer).get(f"chats?q=number&cursor={cursor}").status_code == 400


def test_a_word_is_looked_up_in_the_index_in_its_place(cast: Cast) -> None:
    elsewhere = make_user("elsa")
    others = [make_chat(elsewhere, title=f"Other {number}") for number in range(38)]
    mine = [make_chat(cast.owner, cast.workspace, title=f"Mine {number}") for number in range(2)]
    Message.objects.bulk_create(
        Message(chat=chat, role=MessageRole.USER, content=f"Message {number} says what is common to them all")
        for chat in [*others, *mine]
        for number in range(100)
    )
    make_message(mine[1], "The aardvark was here")
    values = {"places": f"'at:{cast.workspace.pk}'", "question": "common", "most": NEWEST}
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE chat_message, chat_messagewords, chat_chat")
        cursor.execute("EXPLAIN ANALYZE " + WORDS, values)
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "message_words" in plan and "Seq Scan" not in plan, plan
    assert "rows=200" in plan and "rows=4000" not in plan, plan  # reads its own workspace alone
    assert found(cast.owner, "aardvark") == ["Mine 1"]


def test_the_words_of_a_message_follow_it(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    message = make_message(chat, "zebra", role=MessageRole.ASSISTANT, status=MessageStatus.STREAMING)
    assert not MessageWords.objects.exists()
    Message.objects.filter(pk=message.pk).update(content="zebra crossing", status=MessageStatus.DONE)
    assert MessageWords.objects.get().words == f"'at:{cast.workspace.pk}' 'crossing':2 'zebra':1"
    chat.delete()
    assert not MessageWords.objects.exists()


def test_a_search_asks_few_questions(cast: Cast, django_assert_max_num_queries: Any) -> None:
    for number in range(30):
        make_message(make_chat(cast.owner, cast.workspace, title=f"Chat {number}"), "Zebra")
    client = Client()
    client.force_login(cast.owner)
    address = reverse("chat:chat_list", args=[cast.workspace.public_id])
    with django_assert_max_num_queries(9):
        assert client.get(address, {"q": "zebra"}).content.decode().count("<mark>") == 30
