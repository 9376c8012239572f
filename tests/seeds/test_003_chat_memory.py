"""Seed 003: chat memory, saved and recalled by the model, by a person's button and over REST."""

import json
import re

import pytest
from django.test import Client

from chat.models import Chat
from memories.models import Extraction
from memories.models.memory import SourceType
from tests.api import Api
from tests.factories import make_key_text, make_message
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.openai_server import Answer, Call
from tests.seeds.conftest import Hub
from tests.seeds.shown_elsewhere import without_a_test

pytestmark = pytest.mark.django_db
OF_TOOLS, OF_PAGES = "tests/chat/tools/test_tools.py::", "tests/memories/views/test_pages.py::"
OF_SAVED, OF_RECALL = "tests/chat/turns/test_auto_saved.py::", "tests/memories/recalling/test_recall.py::"
OF_MEMORIES, OF_CHATS = (
    "tests/memories/api/test_api_memories.py::",
    "tests/chat/api/test_api_chat_memories.py::",
)
SHOWN = {
    "recall pages by limit and offset up to twenty": OF_TOOLS + "test_recall_pages_by_limit_and_offset",
    "deep thinking of 200 characters is distilled": OF_SAVED
    + "TestDeepThink::test_outputs_of_200_characters_or_more_are_distilled",
    "a compaction is distilled": OF_SAVED + "TestOtherSources::test_a_compaction",
    "research is distilled": "tests/chat/modes/test_research.py"
    "::test_a_question_is_researched_and_its_report_names_its_sources",
    "an event tells of an automatic save": OF_SAVED
    + "TestDeepThink::test_what_it_stores_says_where_it_comes_from_and_is_told",
    "what a person saves is no automatic save": OF_SAVED
    + "TestOnceEach::test_what_a_person_saves_is_no_automatic_save",
    "a list of one chat is flat and newest first": OF_CHATS
    + "test_list_is_flat_newest_first_and_of_this_chat_alone",
    "a message of another chat is not found": OF_CHATS
    + "test_a_message_that_is_not_in_the_chat_is_not_found",
    "paging outlasts inserts and deletes": OF_MEMORIES
    + "test_list_is_newest_first_and_survives_inserts_and_deletes_while_paging",
    "synthesis rewrites the source": "tests/chat/chats/test_synthesize.py"
    "::test_the_model_rewrites_a_message_before_it_is_stored",
    "rerun refreshes the same row": "tests/chat/chats/test_synthesize.py"
    "::test_running_an_extraction_again_refreshes_the_same_row",
    "cosine with a threshold": OF_RECALL + "test_semantic_drops_what_is_below_the_threshold",
    "an index for every size of vector": "tests/memories/recalling/test_embedding_models.py"
    "::test_every_size_follows_another_finds_duplicates_and_is_recalled",
    "an edit in place": OF_PAGES + "test_editing_in_place",
    "a card says what where from when and who": OF_PAGES + "test_a_card_says_what_where_from_when_and_who",
    "deleting by its icon": OF_PAGES + "test_forgetting_can_be_undone_where_it_was_done",
    "the badge counts after adding": OF_PAGES + "test_adding_confirms_and_counts",
    "a memory of another chat is not found": OF_CHATS + "test_a_memory_of_another_chat_is_not_found",
    "the model's search names what it found": OF_TOOLS + "test_workspace_search_names_the_kind",
    "the model saves and the memory is its": OF_TOOLS
    + "test_a_model_saves_a_memory_as_the_person_from_the_chat",
    "what a tool wrote is distilled as the model's": OF_SAVED
    + "TestOtherSources::test_a_summary_noted_by_a_tool",
    "remember this keeps a message as the person's": OF_CHATS + "test_a_message_is_remembered",
    "one of message and text is needed": OF_CHATS + "test_create_names_the_wrong_fields",
    "deleting is soft and hides it everywhere": OF_CHATS + "test_patch_and_delete",
    "a near duplicate answers with the one that is there": OF_CHATS + "test_a_message_is_remembered",
    "a message has a button that remembers it": "tests/chat/views/test_pages.py"
    "::test_remember_this_confirms_counts_and_can_be_undone",
    "what is below the threshold is not given": "tests/chat/turns/test_turn.py"
    "::test_small_talk_gets_no_block_but_a_receipt_of_what_was_left_out",
    "what matters is given without anybody's asking": "tests/chat/turns/test_turn.py"
    "::test_the_recalled_block_stands_right_before_the_question_and_not_in_history",
    "a search finds memories documents and artifacts together": "tests/chat/chats/test_finding.py"
    "::test_everything_is_found_in_one_ranked_list_with_a_floor",
    "recall answers with a markdown list": OF_TOOLS + "test_recall_gives_the_markdown_list",
    "an edit embeds anew and keeps a revision": "tests/memories/writing/test_gate.py"
    "::test_edit_embeds_anew_drops_what_came_from_the_old_text_and_keeps_a_revision",
    "a store without an embedder": "tests/memories/writing/test_gate.py"
    "::test_text_is_stored_without_an_embedder_found_by_words_and_embedded_later",
}
BULLETS = "User prefers responses in bullet-point format"
FORMAT = "Which bullet-point format for responses does the user prefer?"


def test_promises_shown_elsewhere_have_their_tests() -> None:
    assert without_a_test(SHOWN) == []


def said(hub: Hub, chat: str, text: str) -> str:
    """Create a message in a chat. Return its id."""
    return make_message(Chat.objects.get(public_id=chat), text).public_id


# --- Key characteristics


def test_every_chat_of_a_workspace_has_the_same_store(turns: Hub) -> None:
    turns.model.script(Answer(calls=[Call("x_save_memory", {"content": BULLETS})]), Answer("Noted."))
    turns.say(turns.chat(), f"{BULLETS}. I prefer bullets.")
    turns.say(turns.chat(), FORMAT)
    assert BULLETS in turns.items("<recalled-memories>")[0]["content"]


def test_the_nearest_in_meaning_come_first(hub: Hub) -> None:
    hub.save("Cats purr softly at night")
    hub.save(BULLETS)
    found = hub.recall(FORMAT, ranking="semantic", threshold=-1)
    assert [hit["content"] for hit in found] == [BULLETS, "Cats purr softly at night"]
    assert found[0]["score"] > found[1]["score"]


@pytest.mark.parametrize("dimension", [768, 1024, 3072, 4096])
def test_the_size_of_a_vector_is_the_embedders(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, dimension: int
) -> None:
    monkeypatch.setattr("workspaces.index.embedding.get_embedder", lambda: FakeEmbedder(dimension))
    hub.save(BULLETS)
    assert [hit["content"] for hit in hub.recall(FORMAT)] == [BULLETS]


# --- Automatic: the model's tools


def test_a_category_is_kept_verbatim_and_never_inferred(turns: Hub) -> None:
    for content, category in (("I collect stamps", None), ("I breed newts", "Übriges & more")):
        arguments = {"content": content} | ({"category": category} if category else {})
        turns.model.script(Answer(calls=[Call("x_save_memory", arguments)]), Answer("Noted."))
        turns.say(turns.chat(), content)
    categories = {memory["content"]: memory["category"] for memory in turns.memories()}
    assert categories == {"I collect stamps": None, "I breed newts": "Übriges & more"}


def test_a_near_duplicate_is_skipped_and_the_model_is_told_the_one_that_is_there(turns: Hub) -> None:
    turns.save(BULLETS)
    turns.model.script(Answer(calls=[Call("x_save_memory", {"content": f"{BULLETS}."})]), Answer("Noted."))
    turns.say(turns.chat(), BULLETS)
    assert BULLETS in turns.asked.tool_results[0] and "lready" in turns.asked.tool_results[0]
    assert len(turns.memories()) == 1


def test_the_model_is_offered_both_and_decides_itself(turns: Hub) -> None:
    turns.say(turns.chat(), "Hello")
    assert {"x_save_memory", "x_recall_memory", "x_workspace_search"} <= set(turns.asked.tool_names)
    assert "tool_choice" not in turns.asked.body


# --- Background extraction


# --- Manual


def test_synthesize_is_off_unless_asked_for(hub: Hub) -> None:
    chat = hub.chat()
    hub.model.script(Answer(json.dumps({"text": "The deadline is March 15"})))
    plain = hub.api.post(f"{chat}/memory", {"content": "so the deadline, it is March 15, ok"}).json()
    assert plain["content"] == "so the deadline, it is March 15, ok" and hub.model.chat_requests == []
    hub.api.post(f"{chat}/memory", {"content": "well you know I collect stamps", "synthesize": True})
    assert len(hub.model.chat_requests) == 1


def test_a_change_embeds_the_new_text(hub: Hub) -> None:
    chat = hub.chat()
    made = hub.api.post(f"{chat}/memory", {"content": "The zebra lives in Bern"}).json()
    changed = hub.api.patch(f"{chat}/memories/{made['id']}", {"content": "Tea is served at four"})
    assert changed.status_code == 200
    assert [hit["id"] for hit in hub.recall("When is tea served?", ranking="semantic")] == [made["id"]]
    assert hub.recall("zebra", ranking="semantic") == []


def test_the_routes_of_a_chat_take_a_session_and_no_key(hub: Hub) -> None:
    chat = hub.chat()
    program = Api(key=make_key_text(hub.cast.owner, hub.cast.workspace))
    assert program.get(f"{chat}/memories").status_code == 401
    assert program.post(f"{chat}/memory", {"content": BULLETS}).status_code == 401
    assert hub.memories() == []


# --- A workspace's memories


def test_a_memory_is_made_without_a_chat(hub: Hub) -> None:
    made = hub.api.post(f"{hub.ws}/memories", {"content": BULLETS, "category": "preference"})
    assert (made.status_code, made.json()["source_chat_id"]) == (201, None)


def test_a_change_of_a_workspaces_memory_leaves_the_rest(hub: Hub) -> None:
    made = hub.save(BULLETS, category="preference")
    changed = hub.api.patch(f"{hub.ws}/memories/{made['id']}", {"content": "User prefers prose"}).json()
    assert (changed["content"], changed["category"]) == ("User prefers prose", "preference")
    assert changed["source_type"] == made["source_type"]


def test_a_chat_without_a_workspace_belongs_to_the_default_one(hub: Hub) -> None:
    chat = hub.api.post("chats", {}).json()
    hub.api.post(f"{chat['id']}/memory", {"content": BULLETS})
    hub.move_home()
    assert hub.texts() == {BULLETS} and chat["workspace_id"] == hub.ws.partition("/")[2]


# --- Passive injection


# --- Chat UI


def test_the_panel_lists_what_is_remembered_and_a_badge_counts_it(hub: Hub) -> None:
    hub.save(BULLETS, category="preference")
    client = Client()
    client.force_login(hub.cast.owner)
    panel = client.get(f"/{hub.ws}/memories/").content.decode()
    assert BULLETS in panel and "preference" in panel
    assert re.search(r"^\s*1<", client.get(f"/{hub.ws}/memories/count/").content.decode())


# --- Data model


def test_an_id_is_mem_and_24_alphanumerics(hub: Hub) -> None:
    assert re.fullmatch(r"mem_[A-Za-z0-9]{24}", hub.save(BULLETS)["id"])


def test_times_are_iso_8601(hub: Hub) -> None:
    memory = hub.save(BULLETS)
    for name in ("created_at", "updated_at"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", memory[name])


def test_a_memory_outlives_its_chat_and_names_it(hub: Hub) -> None:
    chat = hub.chat()
    made = hub.api.post(f"{chat}/memory", {"content": BULLETS}).json()
    hub.api.delete(f"chats/{chat}")
    [memory] = hub.memories()
    assert (memory["id"], memory["source_chat_id"]) == (made["id"], chat)


# --- Deduplication


# --- Intended differences (docs/conformance.md)


def test_who_is_not_signed_in_gets_json(hub: Hub) -> None:
    answer = Api().get(f"{hub.chat()}/memories")
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "not_signed_in")


def test_a_longer_change_is_refused_and_not_cut(hub: Hub) -> None:
    made = hub.save(BULLETS)
    assert hub.api.patch(f"{hub.ws}/memories/{made['id']}", {"content": "x" * 2001}).status_code == 422


@pytest.mark.parametrize("category", ["x" * 50, "x" * 51], ids=["as long as may be", "longer"])
def test_a_category_has_fifty_characters_at_most(hub: Hub, category: str) -> None:
    made = hub.api.post(f"{hub.ws}/memories", {"content": BULLETS, "category": category})
    assert made.status_code == (201 if len(category) == 50 else 422)


def test_another_number_is_no_duplicate_however_near(hub: Hub) -> None:
    hub.save("The project deadline of the big launch in Bern is March 15")
    later = hub.save("The project deadline of the big launch in Bern is March 16")
    assert len(hub.memories()) == 2 and later["may_replace"] is not None


def test_a_vector_is_made_with_the_save(hub: Hub) -> None:
    assert hub.save(BULLETS)["searchable"] is True


def test_what_a_tool_quoted_is_not_distilled(turns: Hub) -> None:
    turns.save(BULLETS * 10)
    turns.model.script(
        Answer(
            calls=[Call("x_recall_memory", {"query": FORMAT}), Call("x_workspace_search", {"query": FORMAT})]
        ),
        Answer("Bullets."),
    )
    turns.say(turns.chat(), "Hello there")
    assert not Extraction.objects.filter(source_type=SourceType.MODEL).exists()


def test_a_message_that_says_nothing_is_refused(hub: Hub) -> None:
    chat = hub.chat()
    for text, status in (("What is the capital of Peru?", 201), ("OK.", 422)):
        assert hub.api.post(f"{chat}/memory", {"messageId": said(hub, chat, text)}).status_code == status
    assert hub.texts() == {"What is the capital of Peru?"}
