"""Ratings and tags, separate for each reader, and the arrows between versions."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connections
from django.test import Client
from django.utils import timezone

from chat.chats import tags_and_pins
from chat.models import AnswerRating, Chat, ChatTag, Message, MessageRole, MessageStatus
from chat.turns.services import supersede
from memoryhub.errors import Invalid
from tests.admin_pages import staff
from tests.conftest import Cast, make_cast
from tests.factories import make_agent, make_chat, make_message
from tests.signing_in import signed_in
from workspaces.accounts.account_changes import delete_account

pytestmark = pytest.mark.django_db
JSON: dict[str, Any] = {"content_type": "application/json"}


def answered(chat: Chat, text: str = "In May.", **fields: Any) -> Message:
    question = make_message(chat, "When?")
    return make_message(chat, text, role=MessageRole.ASSISTANT, reply_to=question, model="large-2", **fields)


def test_each_reader_says_once_what_they_think_and_may_change_it(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    answer = answered(chat)
    where = f"/chat/api/{chat.public_id}/messages/{answer.public_id}/rating"
    viewer, owner = signed_in(cast.viewer), signed_in(cast.owner)
    said = {"rating": "down", "reasons": ["long", "wrong"], "comment": " It is\n in <b>June</b>. "}
    got = viewer.put(where, said, **JSON).json()
    assert (got["rating"], got["reasons"], got["comment"]) == (
        "down",
        ["wrong", "long"],
        "It is in <b>June</b>.",
    )
    assert owner.get(where).json()["rating"] is None, "nobody reads what others said"
    assert owner.put(where, {"rating": "up"}, **JSON).status_code == 200
    assert viewer.put(where, {"rating": "up", "reasons": ["helpful"]}, **JSON).json()["comment"] == ""
    assert AnswerRating.objects.count() == 2
    assert viewer.delete(where).status_code == viewer.delete(where).status_code == 204
    assert [rating.user for rating in AnswerRating.objects.all()] == [cast.owner]
    delete_account(cast.editor)
    chat.delete()
    assert not AnswerRating.objects.exists()


def test_a_rating_that_cannot_be_is_refused(cast: Cast) -> None:
    for wrong in (
        {},
        {"rating": "best"},
        {"rating": ["up"]},
        {"rating": "up", "reasons": ["wrong"]},
        {"rating": "down", "reasons": ["made up"]},
        {"rating": "down", "reasons": "wrong"},
        {"rating": "down", "comment": "x" * 501},
        {"rating": "down", "comment": {"a": 1}},
        {"rating": "down", "reasons": ["wrong"] * 1000},
    ):
        chat = make_chat(cast.owner, cast.workspace)
        answer = answered(chat)
        where = f"/chat/api/{chat.public_id}/messages/{answer.public_id}/rating"
        assert signed_in(cast.owner).put(where, wrong, **JSON).status_code == 422
        for other in (answer.reply_to, answered(chat, status=MessageStatus.STREAMING)):
            assert other is not None
            path = f"/chat/api/{chat.public_id}/messages/{other.public_id}/rating"
            assert signed_in(cast.owner).put(path, {"rating": "up"}, **JSON).status_code == 422
        assert not AnswerRating.objects.exists()


def test_staff_see_what_is_said_and_its_words_as_far_as_they_may_read_chats(cast: Cast) -> None:
    helper = make_agent(cast.owner, cast.workspace, name="Proofreader")
    chat = make_chat(cast.owner, cast.workspace, agent=helper)
    private = make_chat(cast.owner, cast.workspace, is_private=True)
    for place, comment in ((chat, "shared words"), (private, "private words")):
        message = answered(place)
        where = f"/chat/api/{place.public_id}/messages/{message.public_id}/rating"
        signed_in(cast.owner).put(where, {"rating": "down", "reasons": ["wrong"], "comment": comment}, **JSON)
    rights = ["view_answerrating"]
    for more, seen in (
        ([], (False, False)),
        (["view_message"], (True, False)),
        (["view_message", "read_private_chat"], (True, True)),
    ):
        client = staff(*rights, *more)
        page = client.get("/admin/chat/answerrating/").content.decode()
        assert ("shared words" in page, "private words" in page) == seen
        assert "Proofreader" in page and "large-2" in page and "Not correct" in page
        one = AnswerRating.objects.get(comment="private words")
        detail = client.get(f"/admin/chat/answerrating/{one.pk}/change/").content.decode()
        assert ("private words" in detail) == seen[1]
    for query, number in (
        ("rating=up", 0),
        ("reason=wrong", 2),
        ("reason=long", 0),
        ("model_name=large-2", 2),
        (f"q={helper.public_id}", 1),
    ):
        page = client.get(f"/admin/chat/answerrating/?{query}").content.decode()
        assert page.count("Not correct</td>") == number, query
    assert Permission.objects.filter(codename="view_answerrating").exists()


def test_tags_are_each_readers_own_and_narrow_their_list(cast: Cast) -> None:
    trip, plan = (make_chat(cast.owner, cast.workspace, title=title) for title in ("Trip", "Plan"))
    viewer = signed_in(cast.viewer)

    def put(client: Client, chat: Chat, *tags: Any) -> Any:
        return client.put(f"/chat/api/chats/{chat.public_id}/tags", {"tags": tags}, **JSON)

    assert put(viewer, trip, " Travel ", "work", "TRAVEL").json() == {"tags": ["TRAVEL", "work"]}
    assert put(viewer, plan, "Work").json() == {"tags": ["work"]}, "in the words of the one there is"
    here = f"/chat/api/workspaces/{cast.workspace.public_id}/tags"
    assert viewer.get(here).json() == {"tags": ["TRAVEL", "work"]}
    owner = signed_in(cast.owner)
    assert (
        owner.get(here).json() == {"tags": []} and owner.get("/chat/api/chats?tag=work").json()["items"] == []
    )
    found = viewer.get("/chat/api/chats?tag=WORK").json()["items"]
    assert [chat["title"] for chat in found] == ["Plan", "Trip"]
    where = f"/workspaces/{cast.workspace.public_id}/chats/list/"
    assert "Plan" not in viewer.get(f"{where}?tag=travel").content.decode().split("</select>")[1]
    assert "chat-tag" not in owner.get(where).content.decode(), "who has no tags sees no filter"
    trip.is_private = True
    trip.save()
    assert viewer.get(here).json() == {"tags": ["work"]}, (
        "of a chat that is no longer theirs to see nothing shows"
    )
    assert put(viewer, trip, "x").status_code == put(signed_in(cast.stranger), plan, "x").status_code == 404
    row = viewer.post(f"/chats/{plan.public_id}/tags/", {"tags": "<b>a</b>, b"})
    assert row["HX-Trigger"] == "chats:changed"
    form = viewer.get(f"/chats/{plan.public_id}/tags/").content.decode()
    assert "&lt;b&gt;a&lt;/b&gt;, b" in form and "<b>a" not in form
    long = viewer.post(f"/chats/{plan.public_id}/tags/", {"tags": "x" * 41})
    assert long.status_code == 422 and "A tag may have at most 40 characters." in long.content.decode()


def test_what_the_database_holds_to_be_one_tag_is_one(cast: Cast) -> None:
    chat, client = make_chat(cast.owner, cast.workspace), signed_in(cast.owner)
    for names in (["İ", "i"], ["İstanbul", "istanbul"], ["ẞ", "ß"], ["K", "k"]):
        answer = client.put(f"/chat/api/chats/{chat.public_id}/tags", {"tags": [*names, "a b"]}, **JSON)
        assert answer.status_code == 200, names
        for asked in (*answer.json()["tags"], names[-1], " A  B "):
            found = client.get("/chat/api/chats", {"tag": asked}).json()["items"]
            assert [each["id"] for each in found] == [chat.public_id], asked
    assert client.get("/chat/api/chats", {"tag": "elsewhere"}).json()["items"] == []


def test_a_tag_that_cannot_be_is_refused_and_changes_nothing(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    passing = make_chat(cast.owner, cast.workspace, is_temporary=True)
    owner = signed_in(cast.owner)
    tags_and_pins.set_tags(chat, ["kept"], by=cast.owner)
    path = f"/chat/api/chats/{chat.public_id}/tags"
    many = [f"t{number}" for number in range(11)]
    for wrong in ([None], [1], ["x" * 41], many, "kept", {"a": 1}, [["a"]]):
        assert owner.put(path, {"tags": wrong}, **JSON).status_code == 422, wrong
    assert owner.post(f"/chats/{chat.public_id}/tags/", {"tags": ",".join(many)}).status_code == 422
    with pytest.raises(Invalid):
        tags_and_pins.set_tags(passing, ["x"], by=cast.owner)
    monkeypatch.setattr(tags_and_pins, "MOST_HERE", 2)
    with pytest.raises(Invalid):
        tags_and_pins.set_tags(make_chat(cast.owner, cast.workspace), ["a", "b"], by=cast.owner)
    assert [tag.name for tag in ChatTag.objects.all()] == ["kept"]


@pytest.mark.django_db(transaction=True)
def test_two_requests_at_once_leave_each_tag_once() -> None:
    cast = make_cast()
    chat = make_chat(cast.owner, cast.workspace)

    def tag(name: str) -> None:
        try:
            tags_and_pins.set_tags(chat, [name], by=cast.owner)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(tag, ["Travel", "travel", "TRAVEL", "Travel"]))
    assert ChatTag.objects.get().name.lower() == "travel"


def test_the_arrows_walk_through_the_versions_of_a_question(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    messages = []
    for number in range(3):  # asked once, edited twice
        question = make_message(chat, f"Question {number}?")
        messages.append(question)
        if number:
            rest = chat.messages.filter(pk__lt=question.pk)
            supersede(rest, first=messages[-2], by=question, now=timezone.now())
        make_message(chat, f"Answer {number}.", role=MessageRole.ASSISTANT, reply_to=question)
    owner, at = signed_in(cast.owner), f"/chats/{chat.public_id}/"

    def shown() -> str:
        return owner.get(at).content.decode()

    def press(to: str) -> int:
        current = chat.messages.current().order_by("pk").first()
        assert current is not None
        status: int = owner.post(f"{at}messages/{current.public_id}/step/?to={to}").status_code
        return status

    assert "Version 3 of 3" in shown() and press("newer") == 409
    assert press("older") == 302 and "Version 2 of 3" in shown() and "Answer 1." in shown()
    assert press("older") == 302 and "Version 1 of 3" in shown() and "Question 0?" in shown()
    assert press("older") == 409
    assert [press("newer"), press("newer")] == [302, 302] and "Version 3 of 3" in shown()
    seen = signed_in(cast.viewer).get(at).content.decode()
    assert "2 earlier versions" in seen and "Version 3 of 3" not in seen and "step/?to=" not in seen
