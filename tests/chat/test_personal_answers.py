"""Results of an answer that uses personal data: memories, artifacts, runs and files stay personal."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from chat.chats import sharing
from chat.chats.save_as_artifact import save_answer
from chat.chats.services import set_private
from chat.models import Chat, Message, MessageRole, PassingTurn, ToolCall
from chat.models.runs import Run
from chat.runs.services import RunRequest, rerun, start_run
from chat.runs.workspace_tools import caller_of
from chat.tools.base import InChat, ToolCaller
from chat.tools.memory import ToSave, save
from chat.turns.client_turns import load_passing
from chat.turns.extraction_text import load_turn
from chat.turns.remember_this import remember_message
from chat.turns.services import begin_turn
from chat.turns.turn import wait_until_idle
from chat.views.import_export import _json, _markdown
from memories.models import Extraction, Memory, Review, Scope, SourceType
from memories.tasks import rerun_extraction
from memories.writing.extraction_jobs import extract, queue_extraction
from memoryhub.errors import Conflict
from tests.chat.import_export.test_exchange import empty_installation, exported, imported_whole, lines_of
from tests.conftest import Cast
from tests.factories import (
    HERE,
    make_artifact,
    make_chat,
    make_memory,
    make_message,
    make_user,
    make_workspace,
)
from tests.fakes.openai_server import Answer, Call, ScriptedOpenAI
from workspaces.access import default_workspace, get_workspace
from workspaces.models import Artifact, Membership, Role, Workspace

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "walnuts"
KNOWN = "The party cake must have no walnuts"


@pytest.fixture
def alone(cast: Cast, scripted_model: ScriptedOpenAI) -> Workspace:
    """Create a workspace of one person, who has a personal memory and whose chats have no other readers yet."""
    make_memory(KNOWN, cast.owner, scope=Scope.USER)
    return make_workspace(owner=cast.owner, name="Alone")


@pytest.fixture
def chat(cast: Cast, alone: Workspace) -> Chat:
    return make_chat(cast.owner, alone)


def ask(chat: Chat, content: str = "Which cake shall we order for the party?") -> Message:
    turn = begin_turn(chat, content=content, by=chat.created_by, now=timezone.now(), memory_enabled=True)
    assert wait_until_idle(20)
    turn.answer.refresh_from_db()
    return turn.answer


def answered(
    chat: Chat, personal: str = "held", text: str = f"One without {SECRET}.", **fields: Any
) -> Message:
    question = make_message(chat, "Which cake shall we order for the party?")
    return make_message(chat, text, MessageRole.ASSISTANT, reply_to=question, personal=personal, **fields)


def join(place: Workspace) -> Any:
    later = make_user()
    Membership.objects.create(workspace=place, user=later, role=Role.EDITOR)
    return later


def extract_from(
    answer: Message, server: ScriptedOpenAI, text: str, kind: str = SourceType.AUTO_CHAT
) -> list[Memory]:
    """Extract from this answer with a model that finds this statement. Return the new memories."""
    found = Answer(json.dumps([{"text": text, "kind": "fact", "importance": 0.7}]))
    server.respond = lambda _request: found
    known = set(Memory.objects.values_list("pk", flat=True))
    Extraction.objects.all().delete()
    made = queue_extraction(
        workspace=answer.chat.workspace, user=answer.chat.created_by, chat_id=answer.chat.public_id,
        message_id=answer.public_id, source_type=kind, now=timezone.now(),
    )  # fmt: skip
    extract(made.pk, now=timezone.now())
    made.refresh_from_db()
    assert made.status == "done", made.error
    return list(Memory.objects.exclude(pk__in=known))


class TestExtraction:
    def test_statement_from_a_personal_answer_is_proposed_to_its_person(
        self, cast: Cast, chat: Chat, scripted_model: ScriptedOpenAI
    ) -> None:
        for personal, kind in (
            ("held", SourceType.AUTO_CHAT),
            ("seen", SourceType.AUTO_DEEP_THINK),
            ("held", SourceType.AUTO_RESEARCH),
        ):
            Memory.objects.all().delete()
            chat = make_chat(cast.owner, make_workspace(owner=cast.owner))
            [memory] = extract_from(
                answered(chat, personal), scripted_model, "Aunt Mabel is allergic to walnuts", kind
            )
            assert (memory.owner, memory.workspace) == (cast.owner, default_workspace(cast.owner)), (
                personal,
                kind,
            )
            assert memory.review == Review.PENDING, (personal, kind)
            assert not Memory.objects.visible_to(join(chat.workspace)).exists(), (personal, kind)

    def test_what_only_resembles_the_question_is_theirs_too(
        self, cast: Cast, chat: Chat, scripted_model: ScriptedOpenAI
    ) -> None:
        """It may come from the answer as well, so it stays personal."""
        Memory.objects.all().delete()
        [memory] = extract_from(answered(chat), scripted_model, "The party cake has no nuts")
        assert (memory.owner, memory.review) == (cast.owner, Review.NONE)

    def test_a_persons_own_words_beside_a_personal_answer_stay_the_workspaces(
        self, cast: Cast, chat: Chat, scripted_model: ScriptedOpenAI
    ) -> None:
        question = make_message(chat, "Our bakery is called Sweet Corner.")
        answer = make_message(chat, "Noted.", MessageRole.ASSISTANT, reply_to=question, personal="held")
        [memory] = extract_from(answer, scripted_model, "Our bakery is called Sweet Corner")
        assert (memory.owner, memory.workspace, memory.review) == (None, chat.workspace, Review.NONE)

    def test_of_an_answer_that_is_not_personal_it_is_proposed_to_the_workspace(
        self, chat: Chat, scripted_model: ScriptedOpenAI
    ) -> None:
        Memory.objects.all().delete()
        [memory] = extract_from(answered(chat, ""), scripted_model, "Aunt Mabel is allergic to walnuts")
        assert (memory.owner, memory.workspace, memory.review) == (None, chat.workspace, Review.PENDING)

    def test_text_that_never_leaves_this_machine_is_kept_nowhere_where_it_could(
        self, cast: Cast, chat: Chat, scripted_model: ScriptedOpenAI, settings: Any
    ) -> None:
        settings.LLM_LOCAL = True
        Memory.objects.all().delete()
        answer = answered(chat, stays_here=True)
        assert extract_from(answer, scripted_model, "Aunt Mabel is allergic to walnuts") == []
        Workspace.objects.filter(pk=default_workspace(cast.owner).pk).update(local_only=True)
        [memory] = extract_from(answer, scripted_model, "Aunt Mabel is allergic to walnuts")
        assert memory.owner == cast.owner and memory.workspace.local_only

    def test_a_later_turn_is_not_understood_by_it(self, chat: Chat) -> None:
        """Extraction shows its model earlier messages, which the answer itself did not get."""
        answered(chat)
        later = make_message(chat, "Thanks. It is in Porto.")
        answer = make_message(chat, "Noted.", MessageRole.ASSISTANT, reply_to=later)
        turn = load_turn(answer.public_id, SourceType.AUTO_CHAT, chat.created_by)
        assert turn is not None and [role for role, _text in turn.earlier] == ["user"]

    def test_a_shared_memory_is_not_written_anew_from_it(self, cast: Cast, chat: Chat) -> None:
        answer = answered(chat)
        memory = make_memory("The cake", cast.owner, chat.workspace, source_message_id=answer.public_id)
        said = rerun_extraction(memory_id=memory.pk, by_id=cast.owner.pk)
        assert said == "its source message is personal, and others read the memory"

    def test_turn_of_a_client_is_personal_if_it_may_have_seen_personal_data(
        self, cast: Cast, alone: Workspace
    ) -> None:
        own = Memory.objects.get().public_id
        shared = make_memory("Cakes are from Sweet Corner", cast.owner, alone).public_id
        seen: list[tuple[dict[str, Any], bool]] = [
            ({}, False),
            ({"memory_ids": [own]}, True),
            ({"memory_ids": [shared]}, False),
            ({"memory_ids": ["mem_goneaaaaaaaaaaaaaaaaaaaa"]}, True),
            ({"shown": [SECRET]}, True),
            ({"shown_more": True}, True),
            ({"said": [["user", "?"], ["assistant", KNOWN], ["user", "And?"]]}, True),
        ]
        for number, (fields, is_personal) in enumerate(seen):
            turn = PassingTurn.objects.create(
                workspace=alone, user=cast.owner, conversation="conv_x", fingerprint=str(number),
                created_at=timezone.now(),
                **{"said": [["user", "Which cake?"]], "answer": f"One without {SECRET}"} | fields,
            )  # fmt: skip
            loaded = load_passing(turn.public_id)
            assert loaded is not None and loaded.is_personal is is_personal, fields


class TestTools:
    def caller(self, cast: Cast, answer: Message) -> ToolCaller:
        assert answer.reply_to is not None
        turn = InChat(answer.chat, answer.reply_to, answer)
        return ToolCaller(cast.owner, answer.chat.workspace, Role.OWNER, HERE, timezone.now(), turn=turn)

    def test_a_shared_artifact_is_left_as_it_was_and_the_page_says_why(
        self, cast: Cast, chat: Chat, scripted_model: ScriptedOpenAI
    ) -> None:
        shared = make_artifact(cast.owner, chat.workspace, content="Shopping: flour")
        change = {"id": f"{shared.public_id}-1", "content": KNOWN}
        told: list[str] = []

        def respond(request: Any) -> Answer:
            told.extend(request.tool_results)
            return (
                Answer("I left it.")
                if request.tool_results
                else Answer(calls=[Call("write_artifact", change)])
            )

        scripted_model.respond = respond
        answer = ask(chat)
        shared.refresh_from_db()
        assert (shared.version, shared.content) == (1, "Shopping: flour")
        assert "draws on something personal" in told[0]
        assert ToolCall.objects.get(message=answer).outcome == "refused"
        client = Client()
        client.force_login(cast.owner)
        page = client.get(f"/chats/{chat.public_id}/").content.decode()
        assert (
            "Left an artifact as it was, as others read it and this answer draws on something personal"
            in page
        )

    def test_a_new_artifact_is_the_persons_alone_and_the_page_says_so(
        self, cast: Cast, chat: Chat, scripted_model: ScriptedOpenAI
    ) -> None:
        write = Call("write_artifact", {"title": "Cake", "content": KNOWN})
        scripted_model.respond = lambda request: (
            Answer("Done.") if request.tool_results else Answer(calls=[write])
        )
        ask(chat)
        assert Artifact.objects.get().owner == cast.owner
        client = Client()
        client.force_login(cast.owner)
        assert "Saved an artifact, only for you" in client.get(f"/chats/{chat.public_id}/").content.decode()

    def test_what_stays_here_is_saved_nowhere_where_it_could_leave(self, cast: Cast, chat: Chat) -> None:
        caller = self.caller(cast, answered(chat, stays_here=True))
        with pytest.raises(Conflict):
            caller.home()
        assert caller.home(own_words=True) == (chat.workspace, False)
        Workspace.objects.filter(default_of=cast.owner).update(local_only=True)
        assert caller.home()[1] is True


class TestPeople:
    """Anything that a user keeps of a personal answer stays personal."""

    def test_remember_and_save_as_artifact(self, cast: Cast, chat: Chat) -> None:
        answer, now = answered(chat), timezone.now()
        assert answer.reply_to is not None
        memory = remember_message(answer, by=cast.owner, now=now).memory
        assert memory.owner == cast.owner
        assert save_answer(answer, by=cast.owner, now=now).owner == cast.owner
        proposed = remember_message(answer.reply_to, by=cast.owner, now=now, content="No walnuts").memory
        assert proposed.owner == cast.owner, "proposed for the question, of its answer"

    def test_a_question_in_its_own_words_stays_the_workspaces(self, cast: Cast, chat: Chat) -> None:
        question = make_message(chat, "The party is on Friday.")
        make_message(chat, "Noted", MessageRole.ASSISTANT, reply_to=question, personal="held")
        assert remember_message(question, by=cast.owner, now=timezone.now()).memory.owner is None


class TestRuns:
    def private_run(self, cast: Cast, chat: Chat, **fields: Any) -> Run:
        set_private(chat, is_private=True, by=cast.owner, now=timezone.now())
        return Run.objects.create(
            workspace=chat.workspace, user=cast.owner, mode="loop", objective="Look", chat=chat, is_private=True,
            held_personal=True, status="done", tools=["x_save_memory"],
            deadline_at=timezone.now() + timedelta(hours=1), **fields,
        )  # fmt: skip

    def test_what_a_private_run_saves_is_its_persons(self, cast: Cast, chat: Chat) -> None:
        run = self.private_run(cast, chat)
        save(caller_of(run, is_local=True), ToSave(content="The cake is ordered without walnuts"))
        memory = Memory.objects.latest("pk")
        assert memory.owner == cast.owner
        again = save(
            ToolCaller(**{**vars(caller_of(run, is_local=True)), "call": "run:1"}),
            ToSave(content="Again cake"),
        )
        repeated = save(
            ToolCaller(**{**vars(caller_of(run, is_local=True)), "call": "run:1"}),
            ToSave(content="Again cake"),
        )
        assert again.outcome == "noted" and repeated.outcome in ("noted", "saved")
        assert not Memory.objects.filter(owner=None).exists()

    def test_it_stays_private_when_done_again_after_its_chat_was_opened(self, cast: Cast, chat: Chat) -> None:
        run = self.private_run(cast, chat)
        run.entries.create(
            key="input:notes", kind="input", json=json.dumps(KNOWN), size=40, created_at=timezone.now()
        )
        set_private(chat, is_private=False, by=cast.owner, now=timezone.now())
        run.refresh_from_db()
        assert run.is_private
        again = rerun(run, by=cast.owner, now=timezone.now())
        assert again.is_private and again.held_personal and again.entries.exists()
        assert not Run.objects.visible_to(join(chat.workspace)).exists()

    def test_a_run_that_all_may_read_saves_for_all(self, cast: Cast, chat: Chat) -> None:
        place = get_workspace(cast.owner, chat.workspace.public_id)
        run = start_run(place, RunRequest("Look", "loop"), by=cast.owner, now=timezone.now())
        assert caller_of(run, is_local=True).home() == (chat.workspace, False)


def _page(cast: Cast, chat: Chat, path: str, reader: Any) -> str:
    client = Client()
    client.force_login(reader)
    return " ".join(client.get(f"/chats/{chat.public_id}/{path}").content.decode().split())


FORMATS: dict[str, Callable[[Cast, Chat, Any], str]] = {
    "page": lambda cast, chat, reader: _page(cast, chat, "", reader),
    "markdown": lambda cast, chat, reader: b"".join(_markdown(chat, reader)).decode(),
}


def test_later_reader_is_told_why_the_answer_is_missing(cast: Cast, chat: Chat) -> None:
    answered(chat)
    later, name = join(chat.workspace), cast.owner.shown_name
    for format, read in FORMATS.items():
        shown = read(cast, chat, later)
        assert f"The answer draws on something of {name} alone" in shown and SECRET not in shown, format
        own = read(cast, chat, cast.owner)
        assert "draws on something" not in own and SECRET in own, format


def test_a_file_for_programs_says_that_an_answer_is_withheld(cast: Cast, chat: Chat) -> None:
    answered(chat)
    [question] = json.loads(b"".join(_json(chat, join(chat.workspace))))["messages"]
    assert question["answer_withheld"] is True
    assert [
        each["answer_withheld"] for each in json.loads(b"".join(_json(chat, cast.owner)))["messages"]
    ] == [
        False,
        False,
    ]


def test_paper_and_links_say_it_too(cast: Cast, chat: Chat) -> None:
    answered(chat)
    _link, token = sharing.create_link(chat, days=None, by=cast.owner, now=timezone.now())
    shared = " ".join(Client().get(f"/shared/{token}/").content.decode().split())
    printed = _page(cast, chat, "print/", join(chat.workspace))
    for told in (shared, printed):
        assert (
            "The answer is not shown here, as it draws on something personal." in told and SECRET not in told
        )


class TestExchange:
    @pytest.fixture(autouse=True)
    def _data_dir(self, tmp_path: Any, settings: Any) -> None:
        settings.DATA_DIR = tmp_path

    def test_an_export_has_the_marks_and_an_import_keeps_them(self, cast: Cast, chat: Chat) -> None:
        answered(chat, stays_here=True)
        data = exported(cast.owner, chat.workspace)
        asked, said = lines_of(data, "message")
        assert (asked["personal"], said["personal"], said["stays_here"]) == ("", "held", True)
        (olive,) = empty_installation("olive")
        imported_whole(olive, data)
        message = Message.objects.get(role=MessageRole.ASSISTANT)
        assert (message.personal, message.stays_here) == ("held", True)

    def test_members_who_were_there_before_do_not_read_it(self, cast: Cast, chat: Chat) -> None:
        """An import keeps an answer's date, so membership of another workspace at that time must not count."""
        answered(chat, created_at=timezone.now())
        data = exported(cast.owner, chat.workspace)
        Chat.objects.all().delete()
        Membership.objects.update(created_at=timezone.now() - timedelta(days=30))
        imported_whole(cast.owner, data, cast.workspace)
        brought = Chat.objects.get(workspace=cast.workspace)
        assert SECRET in _page(cast, brought, "", cast.owner)
        for reader in (cast.editor, cast.viewer):
            assert SECRET not in _page(cast, brought, "", reader)
        assert SECRET in exported(cast.owner, cast.workspace).decode()
        assert SECRET not in exported(cast.editor, cast.workspace).decode()

    def test_a_mark_that_is_none_is_refused(self, cast: Cast, chat: Chat) -> None:
        answered(chat)
        data = exported(cast.owner, chat.workspace).replace(b'"personal":"held"', b'"personal":"yes"')
        Chat.objects.all().delete()
        imported_whole(cast.owner, data, cast.workspace)
        assert not Message.objects.filter(role=MessageRole.ASSISTANT).exists()
