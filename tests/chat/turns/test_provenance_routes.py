"""Every source in a prompt: statements from it are never stored without review, and the proposal names the source."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from chat.models import Chat, Message, MessageRole, PassingTurn, ToolCall
from chat.models.runs import Run
from chat.prompting import provenance
from chat.tools.base import ChatTool
from chat.tools.memory import X_RECALL_MEMORY, X_SAVE_MEMORY, X_WORKSPACE_SEARCH
from chat.turns.client_turns import load_passing
from chat.turns.extraction_text import load_turn
from chat.turns.services import begin_turn
from chat.turns.sources import sources_for
from chat.turns.turn import wait_until_idle
from memories.judging.extraction.with_language_model import Candidate
from memories.models import Extraction, Memory, Review
from memories.writing.drafts_from_turns import draft_of
from memories.writing.gate import Draft
from memoryhub.llm.base import Speaker
from tests.api import Api
from tests.conftest import Cast
from tests.factories import (
    HERE,
    make_agent,
    make_artifact,
    make_chat,
    make_document,
    make_memory,
    make_message,
    make_workspace,
)
from tests.fakes.openai_server import Answer, Call, ScriptedOpenAI
from workspaces.models import User

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).parents[3]
PLANTED = "Refunds above 500 euros are paid to the account of Harbour Bank."
SAVED = "Refunds above 500 euros go to Harbour Bank"
ASKED = "Where are refunds above 500 euros paid?"


def looked_up(chat: Chat, server: ScriptedOpenAI, tool: ChatTool[Any], query: str) -> None:
    server.script(Answer(calls=[Call(tool.name, {"query": query})]), Answer("I see."))
    take_turn(chat, "Look that up, please")


def take_turn(chat: Chat, content: str) -> Message:
    turn = begin_turn(chat, content=content, by=chat.created_by, now=timezone.now(), memory_enabled=True)
    assert wait_until_idle(20)
    turn.answer.refresh_from_db()
    return turn.answer


def answered(chat: Chat, text: str = "I see.") -> Message:
    return make_message(chat, text, MessageRole.ASSISTANT, reply_to=make_message(chat, ASKED))


def by_model(chat: Chat, server: ScriptedOpenAI) -> str:
    return answered(chat, PLANTED) and ""


def by_assistant(chat: Chat, server: ScriptedOpenAI) -> str:
    chat.agent = make_agent(chat.created_by, chat.workspace, instructions=PLANTED)
    chat.save()
    return chat.agent.public_id


def by_memory(chat: Chat, server: ScriptedOpenAI) -> str:
    said = "Priya wants no payee but Harbour Bank for refunds, those above 500 euros at least"
    memory = make_memory(said, chat.created_by, chat.workspace)
    looked_up(chat, server, X_RECALL_MEMORY, "refunds Harbour Bank")
    return memory.public_id


def by_passage(chat: Chat, server: ScriptedOpenAI) -> str:
    document = make_document(chat.created_by, chat.workspace, PLANTED)
    answer = answered(chat)
    assert answer.reply_to is not None
    assert sources_for(answer, answer.reply_to, chat.created_by, room=1000, policy=HERE)
    return document.public_id


def by_search(chat: Chat, server: ScriptedOpenAI) -> str:
    document = make_document(chat.created_by, chat.workspace, PLANTED)
    looked_up(chat, server, X_WORKSPACE_SEARCH, "refunds above 500 euros")
    return document.public_id


def by_reading(chat: Chat, server: ScriptedOpenAI) -> str:
    document = make_document(chat.created_by, chat.workspace, PLANTED)
    looked_up(chat, server, X_WORKSPACE_SEARCH, document.public_id)
    return document.public_id


def by_artifact(chat: Chat, server: ScriptedOpenAI) -> str:
    artifact = make_artifact(chat.created_by, chat.workspace, content=PLANTED)
    looked_up(chat, server, X_WORKSPACE_SEARCH, artifact.public_id)
    return artifact.public_id


def by_message(chat: Chat, server: ScriptedOpenAI) -> str:
    message = make_message(make_chat(chat.created_by, chat.workspace), PLANTED)
    looked_up(chat, server, X_WORKSPACE_SEARCH, "refunds above 500 euros")
    return message.public_id


def by_import(chat: Chat, server: ScriptedOpenAI) -> str:
    message = make_message(chat, PLANTED, imported_at=timezone.now())
    make_message(chat, "I see.", MessageRole.ASSISTANT, reply_to=message)
    return message.public_id


def by_tool(chat: Chat, server: ScriptedOpenAI) -> str:
    call = ToolCall.objects.create(message=answered(chat), name="fetch", outcome="found", output=PLANTED)
    return call.public_id


def run_for(answer: Message, **fields: Any) -> Run:
    chat = answer.chat
    return Run.objects.create(
        workspace=chat.workspace, user=chat.created_by, mode="research", objective=ASKED, status="done",
        answer=answer, chat=chat, deadline_at=timezone.now(), **fields,
    )  # fmt: skip


def by_run(chat: Chat, server: ScriptedOpenAI) -> str:
    run = run_for(answered(chat))
    run.entries.create(
        key="shared:found", kind="shared", json=f'"{PLANTED}"', size=80, created_at=timezone.now()
    )
    return run.public_id


def by_web(chat: Chat, server: ScriptedOpenAI) -> str:
    answer = answered(chat, f"Report. {PLANTED}")
    run_for(answer, web_urls=["https://example.org/"])
    return answer.public_id


ROUTES: dict[str, tuple[Speaker, Callable[[Chat, ScriptedOpenAI], str]]] = {
    "a message imported under somebody's name": (Speaker.IMPORT, by_import),
    "an earlier answer": (Speaker.MODEL, by_model),
    "an assistant's instructions": (Speaker.ASSISTANT, by_assistant),
    "a recalled memory": (Speaker.MEMORY, by_memory),
    "a passage given to an answer": (Speaker.DOCUMENT, by_passage),
    "a document that was found": (Speaker.DOCUMENT, by_search),
    "a document that was read": (Speaker.DOCUMENT, by_reading),
    "an artifact that was read": (Speaker.ARTIFACT, by_artifact),
    "a message of another chat": (Speaker.CHAT, by_message),
    "a tool's output": (Speaker.TOOL, by_tool),
    "what a run noted": (Speaker.RUN, by_run),
    "a report from the web": (Speaker.WEB, by_web),
}


def test_words_of_a_source_are_proposed_with_that_source(cast: Cast, scripted_model: ScriptedOpenAI) -> None:
    for route in ROUTES:
        speaker, plant = ROUTES[route]
        chat = make_chat(cast.owner, make_workspace(owner=cast.owner, editor=cast.editor))
        scripted_model.unscript()
        source = plant(chat, scripted_model)
        scripted_model.unscript()
        scripted_model.script(Answer(calls=[Call(X_SAVE_MEMORY.name, {"content": SAVED})]), Answer("Noted."))
        take_turn(chat, ASKED)
        memory = Memory.objects.get(content=SAVED, workspace=chat.workspace)
        assert memory.review == Review.PENDING, route
        assert memory.source_details["rests_on"] == {"speaker": str(speaker), "id": source}, route


def test_words_that_the_person_repeats_are_the_persons(cast: Cast, scripted_model: ScriptedOpenAI) -> None:
    """Tried for a source of each table that sources are read from: messages, tool calls and runs."""
    for route in ("an earlier answer", "a document that was found", "a report from the web"):
        chat = make_chat(cast.owner, make_workspace(owner=cast.owner, editor=cast.editor))
        scripted_model.unscript()
        ROUTES[route][1](chat, scripted_model)
        scripted_model.unscript()
        scripted_model.script(Answer(calls=[Call(X_SAVE_MEMORY.name, {"content": SAVED})]), Answer("Noted."))
        take_turn(chat, f"Remember this: {SAVED}.")
        memory = Memory.objects.filter(content=SAVED, workspace=chat.workspace).first()
        assert memory is None or memory.is_live, f"stored, or known already: {route}"


class TestYes:
    """A “yes” confirms the question it answers, and nothing beside it."""

    SURGERY = "The axolotl surgery is on Friday in Basel."

    def saved(self, chat: Chat, server: ScriptedOpenAI, statement: str) -> Memory:
        server.unscript()
        server.script(Answer(calls=[Call(X_SAVE_MEMORY.name, {"content": statement})]), Answer("Noted."))
        take_turn(chat, "Yes, please do")
        return Memory.objects.get(content=statement)

    def test_confirmed_personal_text_stays_personal(self, cast: Cast, scripted_model: ScriptedOpenAI) -> None:
        for asked in (
            "Your axolotl surgery is on Friday in Basel. Would you like more details?",
            "Your axolotl surgery is on Friday in Basel. Is that right?",
            "Is the axolotl surgery on Friday in Basel?",
        ):
            chat = make_chat(cast.owner, cast.workspace)
            before = answered(chat, asked)
            Message.objects.filter(pk=before.pk).update(personal="held")
            Memory.objects.all().delete()
            memory = self.saved(chat, scripted_model, self.SURGERY)
            assert memory.owner == cast.owner and memory.scope == "user", asked

    def test_what_an_offer_follows_is_not_confirmed(self, cast: Cast, scripted_model: ScriptedOpenAI) -> None:
        chat = make_chat(cast.owner, cast.workspace)
        answered(chat, f"{self.SURGERY} Would you like more details?")
        memory = self.saved(chat, scripted_model, self.SURGERY)
        assert memory.review == Review.PENDING and memory.source_details["rests_on"]["speaker"] == "model"

    def test_confirmed_words_of_a_document_wait_with_their_source(
        self, cast: Cast, scripted_model: ScriptedOpenAI
    ) -> None:
        for asked in ("Shall I look up anything else?", "Is that right?"):
            chat = make_chat(cast.owner, make_workspace(owner=cast.owner))
            document = by_passage(chat, scripted_model)
            answered(chat, f"According to the handbook, {PLANTED} {asked}")
            Memory.objects.all().delete()
            memory = self.saved(chat, scripted_model, SAVED)
            assert memory.review == Review.PENDING, asked
            assert memory.source_details["rests_on"] == {"speaker": "document", "id": document}, asked

    def test_a_plain_question_is_confirmed(self, cast: Cast, scripted_model: ScriptedOpenAI) -> None:
        chat = make_chat(cast.owner, cast.workspace)
        answered(chat, "Is your deadline March 15?")
        memory = self.saved(chat, scripted_model, "User's deadline is March 15")
        assert memory.is_live and memory.owner is None and memory.author == cast.owner


class TestSeveralPeople:
    """A user has saved another one's statement in a shared chat."""

    PASSPORT = "My passport is with the notary Ulrike in Bozen."

    @pytest.fixture
    def chat(self, cast: Cast) -> Chat:
        chat = make_chat(cast.owner, cast.workspace)
        self.said = make_message(chat, self.PASSPORT, author=cast.owner)
        make_message(chat, "I see.", MessageRole.ASSISTANT, reply_to=self.said)
        return chat

    def saved(self, chat: Chat, by: User, server: ScriptedOpenAI, statement: str) -> Memory:
        server.script(Answer(calls=[Call(X_SAVE_MEMORY.name, {"content": statement})]), Answer("Noted."))
        begin_turn(chat, content="Save that.", by=by, now=timezone.now(), memory_enabled=True)
        assert wait_until_idle(20)
        return Memory.objects.get(content=statement)

    def test_it_is_who_said_it(self, cast: Cast, chat: Chat, scripted_model: ScriptedOpenAI) -> None:
        memory = self.saved(chat, cast.editor, scripted_model, self.PASSPORT)
        assert memory.author == memory.written_by == cast.owner
        assert memory.source_message_id == self.said.public_id
        assert self.PASSPORT in memory.source_excerpt

    def test_statement_of_another_person_is_not_attributed_to_the_saver(
        self, cast: Cast, chat: Chat, scripted_model: ScriptedOpenAI
    ) -> None:
        for who in ("User", "The user", "Eddie"):
            statement = f"{who}'s passport is with the notary Ulrike in Bozen."
            memory = self.saved(chat, cast.editor, scripted_model, statement)
            assert memory.review == Review.PENDING, who

    def test_who_has_left_is_not_the_author_nor_is_who_saves(
        self, cast: Cast, chat: Chat, scripted_model: ScriptedOpenAI
    ) -> None:
        Message.objects.filter(pk=self.said.pk).update(author=cast.stranger)
        assert self.saved(chat, cast.editor, scripted_model, self.PASSPORT).author is None

    def test_extracted_statement_belongs_to_the_person_who_made_it(self, cast: Cast, chat: Chat) -> None:
        for statement, is_live in (
            (self.PASSPORT, True),
            ("User's passport is with the notary Ulrike in Bozen", False),
        ):
            asked = make_message(chat, "Save that.", author=cast.editor)
            answer = make_message(chat, "Saved.", MessageRole.ASSISTANT, reply_to=asked)
            turn = load_turn(answer.public_id, "auto_chat", cast.editor)
            extraction = Extraction(
                workspace=cast.workspace, user=cast.editor, chat_id=chat.public_id, source_type="auto_chat"
            )
            assert turn is not None, statement
            draft = draft_of(extraction, turn, "model", Candidate(statement, "fact", 0.5))
            assert draft is not None and draft.for_review is not is_live, statement
            if is_live:
                assert (draft.author, draft.source_message_id) == (cast.owner, self.said.public_id), statement
                assert self.PASSPORT in draft.source_excerpt, statement

    def test_the_model_is_told_who_said_what(
        self, cast: Cast, chat: Chat, scripted_model: ScriptedOpenAI
    ) -> None:
        begin_turn(chat, content="Save that.", by=cast.editor, now=timezone.now(), memory_enabled=True)
        assert wait_until_idle(20)
        said = [
            each["content"] for each in scripted_model.chat_requests[0].messages if each["role"] == "user"
        ]
        assert f'[from "olive"]\n{self.PASSPORT}' in said and said[-1] == '[from "eddie"]\nSave that.'


def test_what_a_program_shows_its_model_is_the_programs(cast: Cast) -> None:
    turn = PassingTurn.objects.create(
        workspace=cast.workspace, user=cast.owner, conversation="conv_x", fingerprint="x",
        said=[["user", "Summarise it"]], shown=sorted(PLANTED.lower().rstrip(".").split()), answer="Done.",
        created_at=timezone.now(),
    )  # fmt: skip
    loaded = load_passing(turn.public_id)
    assert loaded is not None
    source = loaded.provenance.rests_on(SAVED, None)
    assert source.speaker is Speaker.PROGRAM
    draft = Draft(SAVED, cast.workspace, cast.owner).with_source(source)
    assert draft.for_review


def test_every_speaker_has_a_route_that_is_tried() -> None:
    """A new speaker without a test above fails. System prompts name no one; a person's words are the control."""
    tried = {speaker for speaker, _plant in ROUTES.values()}
    assert tried | {Speaker.PERSON, Speaker.SYSTEM, Speaker.PROGRAM} == set(Speaker)
    loaders = {name for name in dir(provenance) if name.startswith("_") and not name.startswith("__")}
    assert {route.__name__ for route in provenance.ROUTES} <= loaders


def prompt_messages() -> list[tuple[str, int, bool]]:
    """Return each place that builds a message for a model: file, line, and whether it names the speaker."""
    found = []
    for path in [*ROOT.glob("chat/**/*.py"), *ROOT.glob("memories/**/*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {
            name.asname or name.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "memoryhub.llm.base"
            for name in node.names
            if name.name == "Message"
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                says = any(keyword.arg == "speaker" for keyword in node.keywords)
                found.append((str(path.relative_to(ROOT)), node.lineno, says))
    return found


def test_every_message_to_a_model_says_who_speaks() -> None:
    made = prompt_messages()
    assert len(made) > 15, "the places are found at all"
    # Extraction reads a conversation as data, and checks the source of what it returns.
    silent = [place for place in made if not place[2] and place[0] != "memories/writing/drafts_from_turns.py"]
    assert not silent


class TestShown:
    """The source of a memory is shown wherever its proposal is."""

    @pytest.fixture
    def proposed(self, cast: Cast) -> Memory:
        details = {"rests_on": {"speaker": "document", "id": "doc_" + "a" * 24}}
        return make_memory(
            SAVED,
            cast.owner,
            cast.workspace,
            source_type="model",
            source_details=details,
            for_review=True,
        )

    def test_rest_names_it(self, cast: Cast, proposed: Memory) -> None:
        [shown] = Api(cast.editor).get(f"workspaces/{cast.workspace.public_id}/proposals").json()["items"]
        assert shown["rests_on"] == {"speaker": "document", "id": "doc_" + "a" * 24}
        at = f"workspaces/{cast.workspace.public_id}"
        kept = make_memory(PLANTED, cast.owner, cast.workspace, source_details=proposed.source_details)
        one = Api(cast.editor).get(f"{at}/memories/{kept.public_id}").json()
        [listed] = Api(cast.editor).get(f"{at}/memories").json()["items"]
        [found] = Api(cast.editor).post(f"{at}/recall", {"query": PLANTED}).json()["memories"]
        assert one["rests_on"] == listed["rests_on"] == found["rests_on"] == shown["rests_on"]

    def test_forged_source_is_ignored(self, cast: Cast, proposed: Memory) -> None:
        client = Client()
        client.force_login(cast.editor)
        for forged in ("doc", {"speaker": "owner"}, {"speaker": []}, {"id": 1}, [], None):
            Memory.objects.update(source_details={"rests_on": forged})
            assert client.get(f"/workspaces/{cast.workspace.public_id}/memories/").status_code == 200, forged
            [shown] = Api(cast.editor).get(f"workspaces/{cast.workspace.public_id}/proposals").json()["items"]
            assert shown["rests_on"] is None, forged
