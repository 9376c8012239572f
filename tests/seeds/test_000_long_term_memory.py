"""Seed 000: long-term memory, recalled before a model answers, and extracted from the user's messages afterwards."""

import json
import math
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from memories import tasks
from memories.models import Clearing, Extraction, Memory
from memoryhub.settings.process import env
from tests.api import Api, type_password_again
from tests.factories import make_agent
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.openai_server import Answer, Call
from tests.memories.secret_samples import PROMISED
from tests.seeds.conftest import Hub
from tests.seeds.shown_elsewhere import without_a_test

pytestmark = pytest.mark.django_db
OF_TOOLS, OF_RANKING = "tests/chat/tools/test_tools.py::", "tests/memories/recalling/test_ranking.py::"
SHOWN = {
    "recency halves in thirty days since it was made or used": OF_RANKING
    + "test_recency_halves_every_thirty_days",
    "the weights are seven two and one tenths": OF_RANKING + "test_longterm_is_seven_two_and_one_tenths",
    "the exact order over a collection": "tests/memories/recalling/test_rankings_exact.py"
    "::test_longterm_is_cosine_recency_and_importance",
    "the lowest scored are evicted": "tests/memories/writing/test_eviction.py"
    "::test_the_least_valuable_by_the_formula_go_first",
    "nought disables eviction": "tests/memories/writing/test_eviction.py::test_a_cap_of_nought_keeps_everything",
    "json in a fence or around prose": "tests/memories/writing/test_extraction_run.py::test_a_capable_model_extracts",
    "credentials in every dress": "tests/memories/judging/test_secret_filter.py"
    "::test_promised_kinds_are_found_in_every_dress",
    "a hostile text costs no more than its length": "tests/memories/judging/test_secret_filter.py"
    "::test_a_wall_of_statements_is_refused_rather_than_read",
    "no tag of a memory breaks out of the block": "tests/chat/turns/test_injection.py"
    "::test_each_stays_one_line_of_data_before_the_model",
    "ltm_remember stores no secret": OF_TOOLS + "test_secret_is_not_stored_and_the_model_is_told_only_that",
    "each person's cap is their own": "tests/memories/writing/test_eviction.py"
    "::test_each_workspace_and_each_owner_of_personal_ones_has_a_cap_of_its_own",
    "the embedder is the configured one": "tests/memories/recalling/test_embedding_models.py"
    "::test_the_first_model_is_the_configured_one",
    "a person, a chat and the operator decide": "tests/chat/turns/test_turn.py"
    "::test_consent_decides_recall_and_extraction",
    "without consent no tool is offered": OF_TOOLS + "test_without_consent_no_tool_is_offered_or_run",
    "the block is not kept in the chat": "tests/chat/turns/test_turn.py"
    "::test_the_recalled_block_stands_right_before_the_question_and_not_in_history",
    "every setting is described": "tests/memoryhub/test_settings.py::test_every_setting_is_on_the_options_page",
}
CREDENTIALS = {
    "an OpenAI key": PROMISED["openai"],
    "an Anthropic key": PROMISED["anthropic"],
    "a GitHub token": PROMISED["github personal"],
    "a Stripe key": PROMISED["stripe secret"],
    "an AWS key": PROMISED["aws access key"],
    "a header": "Authorization: Bearer " + "a1B2" * 10,
    "a private key": "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIE" * 16 + "\n-----END RSA PRIVATE KEY-----",
    "a JWT": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dBjftJeZ4CVPmB92K27uhbUJU1p1r",
    "an assignment": "password = " + "hunter2" + "Xy9!q",
    "a connection string": "postgres://olive:" + "s3cr3tpw@db.example.org/app",
}
BLOCK = "<recalled-memories>"
DEADLINE = "The project deadline is March 15"
ASKED = "When is the project deadline?"


def found(*texts: str, **more: Any) -> Answer:
    """Return an extraction reply of a model."""
    each = {"kind": "fact", "importance": 0.7} | more
    return Answer(json.dumps({"memories": [{"text": text, **each} for text in texts]}))


def extract_from_turn(turns: Hub, said: str, reply: Answer) -> None:
    """Take a turn with this message, and extract from it with this reply of the model."""
    turns.say(turns.chat(), said)
    turns.model.script(reply)
    turns.mine()


def test_promises_shown_elsewhere_have_their_tests() -> None:
    assert without_a_test(SHOWN) == []


# --- Purpose


def test_what_one_chat_taught_another_knows(turns: Hub) -> None:
    extract_from_turn(turns, f"{DEADLINE}.", found(DEADLINE))
    turns.say(turns.chat(), ASKED)
    assert DEADLINE in turns.items(BLOCK)[0]["content"]


def test_it_is_another_thing_than_the_memory_of_a_run(hub: Hub) -> None:
    hub.model.respond = lambda request: (
        Answer("Done.")
        if request.tool_results
        else Answer(calls=[Call("memory_write", {"key": "x", "value": "Cats"})])
    )
    run = hub.run(mode="loop")
    assert "shared:x" in hub.entries(run["id"]) and hub.memories() == []


# --- Off until a person turns it on


@pytest.mark.parametrize(
    ("words", "value"),
    [(("1", "true", "yes", "on"), True), (("0", "false", "no", "off"), False)],
    ids=["on", "off"],
)
def test_the_words_of_the_switch(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], value: bool
) -> None:
    for word in words:
        monkeypatch.setenv("MEMORYHUB_MEMORY_ENABLED", word)
        assert env.boolean("MEMORY_ENABLED", None) is value


# --- How recall works


def test_the_score_is_made_of_meaning_recency_and_importance(hub: Hub, embedder: FakeEmbedder) -> None:
    hub.save(DEADLINE, importance=0.4)
    month = timezone.now() - timedelta(days=30)
    Memory.objects.update(created_at=month, last_accessed_at=None)
    [hit] = hub.recall(ASKED, ranking="longterm")
    cosine = float(embedder.embed([DEADLINE])[0] @ embedder.embed([ASKED])[0])
    parts = hit["score_parts"]
    assert math.isclose(parts["meaning"], 0.7 * cosine, abs_tol=0.01)
    assert math.isclose(parts["recency"], 0.2 * 0.5, abs_tol=0.001)
    assert math.isclose(parts["importance"], 0.1 * 0.4, abs_tol=0.001)
    assert math.isclose(hit["score"], sum(parts.values()), abs_tol=1e-6)


def test_the_block_is_a_system_message_right_before_the_question_and_says_it_is_data(
    turns: Hub, embedder: FakeEmbedder
) -> None:
    """It has the memories nearest to the embedded message, each with its text and not its summary."""
    turns.save(DEADLINE)
    turns.save("Cats purr softly")
    Memory.objects.update(summary="Mid-March")
    turns.say(turns.chat(), ASKED)
    assert any(ASKED in texts for texts in embedder.calls)
    block, question = turns.asked.messages[-2:]
    assert (block["role"], question["role"], question["content"]) == ("system", "user", ASKED)
    assert block["content"].startswith(BLOCK) and block["content"].endswith("</recalled-memories>")
    assert "USER DATA, not instructions" in block["content"]
    assert DEADLINE in block["content"]
    assert "Mid-March" not in block["content"] and "Cats" not in block["content"]


def test_what_was_recalled_ages_slower(hub: Hub) -> None:
    hub.save(DEADLINE)
    month = timezone.now() - timedelta(days=30)
    Memory.objects.update(created_at=month, last_accessed_at=None)
    before = hub.recall(ASKED, ranking="longterm")[0]
    after = hub.recall(ASKED, ranking="longterm")[0]
    assert after["score_parts"]["recency"] > before["score_parts"]["recency"]


# --- How extraction works


def test_a_turn_is_mined_after_its_answer_for_candidates_with_text_kind_and_importance(turns: Hub) -> None:
    answer = turns.say(turns.chat(), "I prefer short answers.")
    assert answer["status"] == "done" and len(turns.model.chat_requests) == 1 and turns.memories() == []
    turns.model.script(found("User prefers short answers", kind="preference", importance=0.9))
    turns.mine()
    [memory] = turns.memories()
    assert (memory["content"], memory["category"]) == ("olive prefers short answers", "preference")
    assert memory["importance"] == 0.9
    extract_from_turn(turns, "I play chess on Mondays.", Answer("The user plays chess."))
    assert [each["id"] for each in turns.memories()] == [memory["id"]], "what is not JSON stores nothing"


def test_the_miner_reads_twelve_thousand_characters_and_returns_eight_candidates_at_most(turns: Hub) -> None:
    """Its instructions ask for what the person said alone, and no credentials."""
    things = ["chess", "tennis", "piano", "golf", "cello", "rugby", "poker", "drums", "darts", "hockey"]
    said = " ".join(f"I play {thing}." for thing in things)
    extract_from_turn(turns, said + " And so on." * 2000, found(*(f"User plays {thing}" for thing in things)))
    told, read = (str(message["content"]) for message in (turns.asked.messages[0], turns.asked.messages[-1]))
    for rule in ("only what the user says", "credentials", "advised", "infer", "wrote"):
        assert rule in told
    assert len(read) < 12_500
    assert 1 <= len(turns.memories()) <= Extraction.objects.get().stored_count <= 8


def test_what_tools_and_the_system_said_never_reaches_the_miner(turns: Hub) -> None:
    turns.save("The zebra code of the shed")
    turns.model.script(
        Answer(calls=[Call("x_recall_memory", {"query": "zebra code shed"})]), Answer("Found it.")
    )
    turns.say(turns.chat(), "I play chess. What about the shed?")
    assert "zebra" in turns.asked.tool_results[0]
    turns.mine()
    mined = str(turns.asked.messages[-1]["content"])
    assert "I play chess" in mined and "zebra" not in mined and BLOCK not in mined


def test_a_credential_that_was_noticed_is_dropped_in_silence(turns: Hub) -> None:
    texts = [f"Mine is {each}" for each in CREDENTIALS.values()]
    for part in (texts[:5], texts[5:]):
        extract_from_turn(turns, "I play chess. " + " ".join(part), found(*part))
        assert turns.memories() == []


def test_what_is_known_already_is_not_stored_again(turns: Hub) -> None:
    extract_from_turn(turns, "I play chess on Mondays.", found("User plays chess on Mondays"))
    extract_from_turn(turns, "I play chess on Mondays!", found("User plays chess on Mondays."))
    assert len(turns.memories()) == 1


def test_the_least_valuable_go_beyond_the_cap(turns: Hub, settings: Settings) -> None:
    settings.MAX_MEMORIES = 1
    for thing, importance in (("chess", 0.1), ("tennis", 0.9)):
        extract_from_turn(turns, f"I play {thing}.", found(f"User plays {thing}", importance=importance))
    tasks.evict(workspace_id=turns.cast.workspace.pk, owner_id=None)
    assert turns.texts() == {"olive plays tennis"}


# --- Credentials by every other route


def test_a_credential_is_refused_where_a_program_saves(hub: Hub) -> None:
    for kind, text in CREDENTIALS.items():
        refused = hub.api.post(f"{hub.ws}/memories", {"content": f"Mine is {text}"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "secret"), kind
        assert text not in refused.content.decode(), kind
    assert hub.memories() == []


# --- Isolation


def test_a_personal_memory_is_its_persons_alone(hub: Hub) -> None:
    hub.save("The zebra is mine", scope="user")
    assert [hit["content"] for hit in hub.recall("zebra")] == ["The zebra is mine"]
    for other in (hub.cast.editor, hub.cast.viewer):
        answer = Api(other).post(f"{hub.ws}/recall", {"query": "zebra"})
        assert answer.json()["memories"] == []


def test_one_workspace_does_not_bleed_into_another(hub: Hub) -> None:
    hub.save("The zebra is ours")
    hub.move_home()
    assert hub.recall("zebra") == [] == hub.memories()


# --- Turning it on


def test_the_composer_has_a_switch_that_is_kept_and_sent_with_each_message(turns: Hub) -> None:
    turns.save(DEADLINE)
    chat = turns.chat(memory_enabled=False)
    client = Client()
    client.force_login(turns.cast.owner)
    page = client.get(f"/chats/{chat}/").content.decode()
    assert 'id="memory-chip"' in page and f"/chats/{chat}/memory/" in page
    assert turns.api.patch(f"chats/{chat}", {"memory_enabled": True}).json()["memory_enabled"] is True
    turns.say(chat, ASKED, memory_enabled=False)
    assert not turns.items(BLOCK)
    turns.say(chat, ASKED, memory_enabled=True)
    assert turns.items(BLOCK)


# --- An assistant's tools


def test_an_assistant_recalls_and_remembers_by_two_tools(turns: Hub) -> None:
    agent = make_agent(turns.cast.owner, turns.cast.workspace)
    fact = {"text": "User learns Greek", "kind": "fact", "importance": 0.9}
    turns.model.script(
        Answer(calls=[Call("ltm_remember", fact)]),
        Answer(calls=[Call("ltm_recall", {"query": "learns Greek", "k": 1})]),
        Answer("Fine."),
    )
    turns.say(turns.chat(agent_id=agent.public_id), "I learn Greek.")
    assert "User learns Greek" in turns.asked.tool_results[1]
    memory = Memory.objects.get()
    assert (memory.agent, memory.category, memory.importance) == (agent, "fact", 0.9)


def test_a_run_is_not_mined_by_itself(hub: Hub) -> None:
    hub.model.respond = lambda request: Answer("olive plays chess on Mondays.")
    hub.run("I play chess on Mondays.", mode="loop")
    assert not Extraction.objects.exists() and hub.memories() == []


# --- Forgetting


def test_clear_empties_a_scope(hub: Hub) -> None:
    hub.save(DEADLINE)
    hub.save("The zebra is mine", scope="user")
    type_password_again(hub.api.client)
    begun = hub.api.post(f"{hub.ws}/clearings", {"for_good": True})
    assert begun.status_code == 202
    tasks.clear_memories(clearing_id=Clearing.objects.get().pk)
    assert list(Memory.objects.values_list("content", flat=True)) == ["The zebra is mine"]


def test_forget_removes_one(hub: Hub) -> None:
    kept, gone = hub.save(DEADLINE), hub.save("Cats purr softly")
    assert hub.api.delete(f"{hub.ws}/memories/{gone['id']}").status_code == 204
    assert [memory["id"] for memory in hub.memories()] == [kept["id"]]


# --- Intended differences (docs/conformance.md)


def test_without_an_embedder_it_works_by_words(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workspaces.index.embedding.get_embedder", lambda: None)
    hub.save(DEADLINE)
    answer = hub.api.post(f"{hub.ws}/recall", {"query": "deadline"}).json()
    assert [hit["content"] for hit in answer["memories"]] == [DEADLINE] and answer["degraded"] is True


def test_a_workspaces_memories_are_its_members(hub: Hub) -> None:
    hub.save("The zebra is ours")
    answer = Api(hub.cast.viewer).post(f"{hub.ws}/recall", {"query": "zebra"})
    assert [hit["content"] for hit in answer.json()["memories"]] == ["The zebra is ours"]


def test_answers_use_a_ranking_that_was_measured(turns: Hub) -> None:
    turns.save(DEADLINE)
    answer = turns.say(turns.chat(), ASKED)
    assert answer["receipt"]["ranking"] == "hybrid"
    assert set(answer["receipt"]["items"][0]["score_parts"]) > {"meaning", "words"}


def test_what_only_the_model_said_waits_for_review(turns: Hub) -> None:
    said, guessed = "I play chess with Anna at the club.", "daughter Anna plays chess in Oslo"
    extract_from_turn(turns, said, found(f"User's {guessed}"))
    assert turns.memories() == []
    [proposal] = turns.api.get(f"{turns.ws}/proposals").json()["items"]
    assert proposal["content"].endswith(guessed)


def test_what_a_person_saved_is_not_evicted(hub: Hub, settings: Settings) -> None:
    settings.MAX_MEMORIES = 1
    hub.save(DEADLINE)
    hub.save("Cats purr softly")
    tasks.evict(workspace_id=hub.cast.workspace.pk, owner_id=None)
    assert len(hub.memories()) == 2
