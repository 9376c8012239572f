"""Personal memories in shared chats: what the prompt contains, and what other members see of them."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from chat.access import get_chat
from chat.chats.personal_memories import (
    chats_with_personal_data_of,
    personal_allowed,
    personal_in,
    use_personal,
)
from chat.chats.services import set_private
from chat.import_export.export import export
from chat.models import Chat, Message, ToolCall
from chat.models.answer_steps import Step
from chat.prompting.short_term_memory import set_summary
from chat.turns.services import begin_turn, retry_answer
from chat.turns.turn import wait_until_idle
from memories.models import Memory, Scope
from memories.recalling.recall import OTHERS_READ, recall, receipt_for
from tests.admin_pages import staff
from tests.api import Api
from tests.conftest import Cast
from tests.factories import HERE, make_agent, make_chat, make_memory, make_workspace
from tests.fakes.openai_server import Answer, Call, ScriptedOpenAI
from workspaces.access import default_workspace
from workspaces.models import Membership, Role, User

pytestmark = pytest.mark.django_db(transaction=True)
QUESTION = "Which cake shall we order for the party?"
SHARED, OWN = "The party cake is ordered at Rosa's bakery", "The party cake must have no walnuts for Olive"
SECRET = "walnuts"  # appears only in personal memories


@pytest.fixture(autouse=True)
def model(scripted_model: ScriptedOpenAI) -> ScriptedOpenAI:
    scripted_model.respond = lambda request: Answer("Let me see.")
    return scripted_model


@pytest.fixture
def own(cast: Cast) -> Memory:
    make_memory(SHARED, cast.editor, cast.workspace)
    return make_memory(OWN, cast.owner, scope=Scope.USER)


@pytest.fixture
def chat(cast: Cast, own: Memory) -> Chat:
    return make_chat(cast.owner, cast.workspace, title="Party", memory_enabled=True)


def ask(chat: Chat, by: User | None = None, **options: Any) -> Message:
    options = {"content": QUESTION, "by": by or chat.created_by, "memory_enabled": True} | options
    turn = begin_turn(chat, now=timezone.now(), **options)
    assert wait_until_idle(20)
    turn.answer.refresh_from_db()
    assert turn.answer.status == "done"
    return turn.answer


def sent(model: ScriptedOpenAI) -> str:
    """Return everything sent to the model since the last call."""
    text = json.dumps([request.body for request in model.chat_requests])
    model.requests.clear()
    return text


def elsewhere(function: Callable[[], object]) -> None:
    """Run the function in a thread with its own connection."""

    def act() -> None:
        try:
            function()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(act).result()


def shown(answer: Message, reader: User) -> list[tuple[str, bool, str]]:
    found = receipt_for(answer.public_id, reader)
    assert found is not None
    return [(item.content, item.used, item.reason) for item in found.items.all()]


class TestWhatTheModelIsShown:
    def test_nothing_personal_until_its_person_says_so_and_nothing_after(
        self, chat: Chat, model: ScriptedOpenAI
    ) -> None:
        ask(chat)
        said = sent(model)
        assert SHARED in said
        assert SECRET not in said
        use_personal(chat, allowed=True, by=chat.created_by)
        ask(chat)
        assert SECRET in sent(model)
        use_personal(chat, allowed=False, by=chat.created_by)
        ask(chat)
        assert SECRET not in sent(model)

    @pytest.mark.parametrize(
        "hidden", [lambda chat: setattr(chat, "is_private", True), lambda chat: move_to_own(chat)]
    )
    def test_where_nobody_else_reads_they_are_used(
        self, chat: Chat, model: ScriptedOpenAI, hidden: Callable[[Chat], None]
    ) -> None:
        hidden(chat)
        chat.save()
        answer = ask(chat)
        assert SECRET in sent(model)
        assert OTHERS_READ not in [reason for *_, reason in shown(answer, chat.created_by)]

    def test_whoever_joins_ends_that(self, cast: Cast, own: Memory, model: ScriptedOpenAI) -> None:
        alone = make_workspace(owner=cast.owner, name="Alone")
        chat = make_chat(cast.owner, alone)
        ask(chat)
        assert SECRET in sent(model)
        Membership.objects.create(workspace=alone, user=cast.stranger, role=Role.VIEWER)
        ask(chat)
        assert SECRET not in sent(model)

    def test_what_one_says_lets_in_nobody_elses(self, cast: Cast, chat: Chat, model: ScriptedOpenAI) -> None:
        make_memory("The party cake of Eddie needs walnuts", cast.editor, scope=Scope.USER)
        use_personal(chat, allowed=True, by=cast.owner)
        ask(chat, cast.editor)
        assert SECRET not in sent(model)

    def test_an_answer_written_again_by_another_uses_what_that_one_may(
        self, cast: Cast, chat: Chat, model: ScriptedOpenAI
    ) -> None:
        use_personal(chat, allowed=True, by=cast.owner)
        answer = ask(chat)
        assert SECRET in sent(model)
        retry_answer(answer, by=cast.editor, now=timezone.now())
        assert wait_until_idle(20)
        said = sent(model)
        assert SHARED in said
        assert SECRET not in said

    def test_what_is_kept_back_changes_nothing_of_what_is_found(self, cast: Cast, own: Memory) -> None:
        now = timezone.now()

        def found() -> list[tuple[str, float]]:
            given = recall(
                QUESTION,
                cast.workspace,
                cast.owner,
                now=now,
                policy=replace(HERE, personal=False),
                withheld=5,
            )
            return [(item.memory.content, item.score) for item in given.items]

        before = found()
        for number in range(30):
            make_memory(f"The party cake {number} has walnuts", cast.owner, scope=Scope.USER)
        assert found() == before

    def test_tools_keep_to_it(self, cast: Cast, chat: Chat, model: ScriptedOpenAI) -> None:
        chat.agent = make_agent(cast.owner, cast.workspace)
        chat.save()
        for tool, said_so in (
            ("x_recall_memory", False),
            ("x_workspace_search", False),
            ("ltm_recall", False),
            ("x_recall_memory", True),
            ("x_workspace_search", True),
        ):
            use_personal(chat, allowed=said_so, by=cast.owner)
            call = Answer(calls=[Call(tool, {"query": "party cake"})])
            model.script(call, Answer("Done."))
            # The question itself recalls nothing: the result comes from the tool.
            answer = ask(chat, content="Go on")
            results = "\n".join(model.chat_requests[-1].tool_results)
            assert SHARED in results, tool
            assert (SECRET in results) is said_so, tool
            assert ToolCall.objects.get(message=answer).count == 1 + said_so, tool

    def test_a_permission_taken_back_while_the_answer_is_written_holds_for_its_tools(
        self, cast: Cast, chat: Chat, model: ScriptedOpenAI
    ) -> None:
        use_personal(chat, allowed=True, by=cast.owner)

        def respond(request: Any) -> Answer:
            if request.tool_results:
                return Answer("Done.")
            elsewhere(lambda: use_personal(chat, allowed=False, by=cast.owner))
            return Answer(calls=[Call("x_recall_memory", {"query": "party cake"})])

        model.respond = respond
        ask(chat, content="Go on")
        assert SECRET not in "".join(model.chat_requests[-1].tool_results)

    def test_the_check_of_a_thought_through_answer(
        self, cast: Cast, chat: Chat, model: ScriptedOpenAI
    ) -> None:
        """The receipt still names the memories that the answer got if the permission is withdrawn during the turn."""
        use_personal(chat, allowed=True, by=cast.owner)
        checks = []

        def respond(request: Any) -> Answer:
            if "<memories>" in str(request.messages):
                checks.append(str(request.messages))
                return Answer('{"statements": []}')
            elsewhere(lambda: use_personal(chat, allowed=False, by=cast.owner))
            return Answer("The party cake is ordered at Rosa's bakery, without nuts.")

        model.respond = respond
        answer = ask(chat, mode="deep_think")
        assert len(checks) == 1
        assert SECRET not in checks[0]
        assert len(Step.objects.get(message=answer, kind="check").memory_ids) == 1

    @pytest.mark.parametrize("said_so", [False, True])
    def test_other_chats_in_short(self, cast: Cast, chat: Chat, model: ScriptedOpenAI, said_so: bool) -> None:
        """Summaries of chats that some readers of this one may not open are left out: private ones, other
        workspaces.
        """
        cast.workspace.private_short_term = cast.owner.short_term_everywhere = True
        cast.workspace.save()
        cast.owner.save()
        for place, about, private in (
            (cast.workspace, "a private walnuts chat", True),
            (default_workspace(cast.owner), "my own walnuts chat", False),
            (cast.workspace, "an open almonds chat", False),
        ):
            other = make_chat(cast.owner, place, is_private=private)
            loaded = get_chat(cast.owner, other.public_id)
            set_summary(loaded, about, by=cast.owner, now=timezone.now())
        use_personal(chat, allowed=said_so, by=cast.owner)
        ask(chat, content="Go on")
        said = sent(model)
        assert "almonds" in said
        assert ("a private walnuts chat" in said, "my own walnuts chat" in said) == (said_so, said_so)


def move_to_own(chat: Chat) -> None:
    chat.workspace = default_workspace(chat.created_by)


class TestWhoReads:
    def test_a_chat_made_private_is_read_by_its_creator_alone(self, cast: Cast, chat: Chat) -> None:
        """A turn of another member that begins at that moment still has other readers."""
        loaded = get_chat(cast.editor, chat.public_id)
        set_private(chat, is_private=True, by=cast.owner, now=timezone.now())
        assert not personal_allowed(loaded, cast.editor)
        assert personal_allowed(loaded, cast.owner)

    def test_shared_anew_it_asks_anew(self, cast: Cast, chat: Chat) -> None:
        for person in (cast.owner, cast.editor):
            use_personal(chat, allowed=True, by=person)
        for is_private in (True, False):
            set_private(chat, is_private=is_private, by=cast.owner, now=timezone.now())
        assert not personal_allowed(chat, cast.owner)
        assert not personal_allowed(chat, cast.editor)

    def test_a_chat_that_is_gone(self, cast: Cast, chat: Chat) -> None:
        Chat.objects.filter(pk=chat.pk).delete()
        assert not personal_allowed(chat, cast.owner)

    def test_said_twice_at_once_it_is_said_once(self, cast: Cast, chat: Chat) -> None:
        def say(_: int) -> None:
            try:
                use_personal(Chat.objects.get(pk=chat.pk), allowed=True, by=cast.owner)
            finally:
                connection.close()

        with ThreadPoolExecutor(4) as several:
            list(several.map(say, range(8)))
        assert list(chat.personal_of.all()) == [cast.owner]


class TestWhatOthersLearn:
    def test_the_receipt_says_what_was_left_out_to_its_person_alone(self, cast: Cast, chat: Chat) -> None:
        answer = ask(chat)
        assert shown(answer, cast.owner) == [(SHARED, True, ""), (OWN, False, OTHERS_READ)]
        for other in (cast.editor, cast.viewer):
            assert shown(answer, other) == [(SHARED, True, "")]
        assert receipt_for(answer.public_id, cast.stranger) is None

    def test_what_would_not_have_been_used_is_not_named(self, cast: Cast, chat: Chat) -> None:
        make_memory("Bicycles rust in winter", cast.owner, scope=Scope.USER)
        answer = ask(chat)
        assert [content for content, *_ in shown(answer, cast.owner)] == [SHARED, OWN]

    @pytest.mark.parametrize("said_so", [False, True])
    def test_no_door_tells_others(self, cast: Cast, chat: Chat, said_so: bool, own: Memory) -> None:
        use_personal(chat, allowed=said_so, by=cast.owner)
        answer = ask(chat)
        retry_answer(answer, by=cast.owner, now=timezone.now())  # and the first becomes a version
        assert wait_until_idle(20)
        newest = Message.objects.get(chat=chat, superseded_by=None, role="assistant")
        for other in (cast.editor, cast.viewer):
            client, api = Client(), Api(other)
            client.force_login(other)
            place = f"{chat.public_id}/messages"
            told = [
                client.get(f"/chats/{chat.public_id}/").content,
                client.get(f"/chats/{chat.public_id}/messages/{newest.public_id}/").content,
                client.get(f"/chats/{chat.public_id}/messages/{newest.public_id}/versions/").content,
                client.get(f"/receipts/{newest.public_id}/").content,
                api.get(place).content,
                api.get(f"{place}/{newest.public_id}/versions").content,
                api.get(f"{place}/{newest.public_id}/receipt").content,
                api.get(f"{place}/{answer.public_id}/receipt").content,
                b"".join(export(other, workspace=cast.workspace, now=timezone.now())),
            ]
            for number, text in enumerate(told):
                for trace in (SECRET, own.public_id, OTHERS_READ, "personal left out"):
                    assert trace not in text.decode(), (number, trace)
            items = api.get(f"{place}/{newest.public_id}/receipt").json()["items"]
            assert [item["position"] for item in items] == [1]

    def test_members_see_the_same_as_if_there_were_none(self, cast: Cast, chat: Chat, own: Memory) -> None:
        def seen(answer: Message) -> Any:
            place = f"{chat.public_id}/messages/{answer.public_id}/receipt"
            told = Api(cast.viewer).get(place).json()
            return {name: told[name] for name in ("items", "threshold", "degraded", "ranking")}

        with_it = seen(ask(chat))
        own.delete()
        without = seen(ask(chat))
        for each in (*with_it["items"], *without["items"]):
            each["score_parts"].pop("recency", None)
            each["score"] = round(each["score"], 3)
        assert with_it == without

    def test_the_threshold_does_not_count_them(self, cast: Cast) -> None:
        """They are in their owner's default workspace, which may have other members."""
        home = default_workspace(cast.owner)
        Membership.objects.create(workspace=home, user=cast.viewer, role=Role.VIEWER)
        make_memory(SHARED, cast.owner, home)
        chat = make_chat(cast.owner, home)
        thresholds = set()
        for number in range(2):
            receipt = receipt_for(ask(chat).public_id, cast.viewer)
            assert receipt is not None
            thresholds.add(receipt.threshold)
            for other in range(9):
                make_memory(f"Walnuts are nut {number}{other}", cast.owner, scope=Scope.USER)
        assert len(thresholds) == 1

    def test_positions_have_no_gap_where_it_was_used(self, cast: Cast, chat: Chat) -> None:
        make_memory(QUESTION.replace("?", " without walnuts"), cast.owner, scope=Scope.USER)
        use_personal(chat, allowed=True, by=cast.owner)
        answer = ask(chat)
        other = cast.viewer
        found = receipt_for(answer.public_id, other)
        mine = receipt_for(answer.public_id, cast.owner)
        assert found is not None and mine is not None
        assert [item.position for item in mine.items.all()] == [1, 2, 3]
        assert mine.items.all()[0].memory.owner == cast.owner, "the best is personal"
        assert [item.position for item in found.items.all()] == [1]
        lines = b"".join(export(other, workspace=cast.workspace, now=timezone.now())).splitlines()
        receipts = [line for line in map(json.loads, lines) if line["type"] == "receipt"]
        assert [[item["position"] for item in each["items"]] for each in receipts] == [[1]]

    def test_a_tool_counts_for_others_what_they_may_see(
        self, cast: Cast, chat: Chat, model: ScriptedOpenAI
    ) -> None:
        use_personal(chat, allowed=True, by=cast.owner)
        model.respond = lambda request: (
            Answer("Done.")
            if request.tool_results
            else Answer(calls=[Call("x_recall_memory", {"query": "party cake"})])
        )
        answer = ask(chat, content="Go on")
        for reader, count in ((cast.owner, 2), (cast.editor, 1), (cast.viewer, 1)):
            client = Client()
            client.force_login(reader)
            page = client.get(f"/chats/{chat.public_id}/").content.decode()
            assert f"Searched memory for “party cake” · {count} found" in page
            told = Api(reader).get(f"{chat.public_id}/messages").json()["items"][-1]["tool_calls"][0]
            assert (told["count"], len(told["memory_ids"])) == (count, count)
        client = Client()
        client.force_login(cast.viewer)
        stream = client.get(f"/chats/{chat.public_id}/messages/{answer.public_id}/stream/")
        heard = "".join(part.decode() for part in read(stream))
        assert "1 found" in heard
        assert "2 found" not in heard

    def test_events_of_a_turn_tell_its_person_alone(self, cast: Cast, chat: Chat) -> None:
        body = {"content": QUESTION, "memory_enabled": True}
        heard = b"".join(read(Api(cast.owner).post(f"{chat.public_id}/messages", body))).decode()
        told = [line for line in heard.split("\n\n") if line.startswith("event: receipt")]
        assert len(told) == 1
        assert SECRET in told[0]
        answer = chat.messages.get(role="assistant")
        for other in (cast.editor, cast.viewer):
            client = Client()
            client.force_login(other)
            stream = client.get(f"/chats/{chat.public_id}/messages/{answer.public_id}/stream/")
            heard = b"".join(read(stream)).decode()
            assert "done" in heard
            assert SECRET not in heard and OTHERS_READ not in heard
        again = Api(cast.editor).post(f"{chat.public_id}/messages/{answer.public_id}/retry")
        heard = b"".join(read(again)).decode()
        assert "event: receipt" in heard
        assert SECRET not in heard and OTHERS_READ not in heard

    def test_staff_without_the_right_sees_no_gap(self, cast: Cast, chat: Chat) -> None:
        answer = ask(chat)
        receipt = receipt_for(answer.public_id, cast.owner)
        assert receipt is not None
        address = f"/admin/memories/receipt/{receipt.pk}/change/"
        page = staff("view_receipt", "view_receiptitem").get(address).content.decode()
        assert SHARED.replace("'", "&#x27;") in page
        assert SECRET not in page
        assert "field-position" not in page
        may = staff("view_receipt", "view_receiptitem", "read_personal_memory").get(address).content.decode()
        assert SECRET in may


def read(response: Any) -> list[bytes]:
    from asgiref.sync import async_to_sync

    async def whole() -> list[bytes]:
        return [
            part if isinstance(part, bytes) else part.encode() async for part in response.streaming_content
        ]

    return async_to_sync(whole)()


class TestSayingSo:
    def test_over_rest_for_oneself_alone_and_back(self, cast: Cast, chat: Chat) -> None:
        place = f"chats/{chat.public_id}"
        told = Api(cast.editor).get(place).json()
        assert (told["read_by_others"], told["use_personal_memories"]) == (True, False)
        changed = Api(cast.editor).patch(place, {"use_personal_memories": True}).json()
        assert changed["use_personal_memories"] is True
        assert Api(cast.owner).get(place).json()["use_personal_memories"] is False
        assert list(chat.personal_of.all()) == [cast.editor]
        changed = Api(cast.editor).patch(place, {"use_personal_memories": False}).json()
        assert changed["use_personal_memories"] is False

    def test_where_nobody_else_reads(self, cast: Cast) -> None:
        made = Api(cast.owner).post("chats", {"title": "Mine"}).json()
        assert (made["read_by_others"], made["use_personal_memories"]) == (False, True)

    def test_with_a_new_chat(self, cast: Cast) -> None:
        body = {"workspace_id": cast.workspace.public_id, "use_personal_memories": True}
        made = Api(cast.owner).post("chats", body).json()
        assert (made["read_by_others"], made["use_personal_memories"]) == (True, True)
        assert Api(cast.editor).get(f"chats/{made['id']}").json()["use_personal_memories"] is False

    def test_viewers_take_no_turns_and_strangers_see_no_chat(self, cast: Cast, chat: Chat) -> None:
        for person, status in ((cast.viewer, 403), (cast.stranger, 404)):
            client = Client()
            client.force_login(person)
            asked = Api(person).patch(f"chats/{chat.public_id}", {"use_personal_memories": True})
            assert asked.status_code == status
            assert client.post(f"/chats/{chat.public_id}/personal/", {"personal": "on"}).status_code == status
        assert not chat.personal_of.exists()

    def test_nothing_but_yes_or_no(self, cast: Cast, chat: Chat) -> None:
        for value in (None, "yes", 1, [True], {"user": "usr_1"}):
            asked = Api(cast.owner).patch(
                f"chats/{chat.public_id}", {"use_personal_memories": value, "title": "X"}
            )
            assert asked.status_code == 422
            assert not chat.personal_of.exists()

    def test_on_the_page(self, cast: Cast, chat: Chat) -> None:
        client = Client()
        client.force_login(cast.owner)
        answer = ask(chat)
        page = " ".join(client.get(f"/chats/{chat.public_id}/").content.decode().split())
        assert 'id="personal-chip"' in page
        assert "1 personal left out" in page
        assert "1 personal memory left out: others read this chat. Only you see this." in page
        shown = client.get(f"/receipts/{answer.public_id}/").content.decode()
        assert "left out: personal, and others read this chat" in shown
        said = client.post(f"/chats/{chat.public_id}/personal/?receipt", {"personal": "on"}).content.decode()
        assert "from your next message on" in said
        assert "checked" in said
        assert personal_in(chat, cast.owner).is_permitted
        chip = client.post(f"/chats/{chat.public_id}/personal/").content.decode()
        assert "checked" not in chip
        assert not personal_in(chat, cast.owner).is_permitted

    def test_no_switch_where_nobody_else_reads_or_one_may_not_write(self, cast: Cast, chat: Chat) -> None:
        for person, place in ((cast.viewer, chat), (cast.owner, make_chat(cast.owner))):
            client = Client()
            client.force_login(person)
            assert b"personal-chip" not in client.get(f"/chats/{place.public_id}/").content


class TestWhoJoinsLater:
    def test_settings_name_the_chats_to_the_person_alone(self, cast: Cast, chat: Chat) -> None:
        ask(chat)
        assert not chats_with_personal_data_of(cast.owner, cast.workspace).exists()
        use_personal(chat, allowed=True, by=cast.owner)
        ask(chat)
        told = "Answers in these chats used your personal memories, files or other chats."
        for person, sees in ((cast.owner, True), (cast.editor, False), (cast.viewer, False)):
            client = Client()
            client.force_login(person)
            page = client.get(f"/workspaces/{cast.workspace.public_id}/settings/").content.decode()
            assert (told in page) is sees
        assert not chats_with_personal_data_of(cast.stranger, cast.workspace).exists()
        set_private(chat, is_private=True, by=cast.owner, now=timezone.now())
        assert not chats_with_personal_data_of(cast.owner, cast.workspace).exists()
