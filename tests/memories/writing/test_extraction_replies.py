"""Extraction by a model, against a server with realistic replies."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.utils import timezone

from memories import tasks
from memories.judging.extraction.grounding import is_grounded, says_nothing
from memories.judging.extraction.with_language_model import parse_candidates
from memories.models import Extraction, Memory, Refusal
from memories.writing import extraction_jobs
from memories.writing.gate import Draft, save_memory
from memoryhub.llm.output_parsing import without_thoughts
from tests.factories import make_chat, make_message, make_user
from tests.fakes.openai_server import Answer, Failure, ScriptedOpenAI
from tests.memories.writing.model_replies import (
    COERCED,
    CUT,
    DRESSED,
    FAIR,
    INVENTED,
    NEARLY,
    NOTHING,
    REPLIES,
    SAID,
    VEG,
    entry,
)
from workspaces.models import User

pytestmark = pytest.mark.django_db
GOLDEN = Path(__file__).parent / "extraction_prompt.txt"
DAY = datetime(2026, 3, 10, 9, 30, tzinfo=UTC)


@pytest.fixture
def olive() -> User:
    return make_user("olive", first_name="Olive", last_name="Tree")


def turn(person: User, said: str, answer: str = "Noted.", before: tuple[str, ...] = ()) -> Extraction:
    """Create a turn with earlier messages, and queue its extraction."""
    room = make_chat(person)
    for at, text in enumerate(before):
        make_message(room, text, "assistant" if at % 2 else "user", created_at=DAY)
    question = make_message(room, said, author=person, created_at=DAY)
    reply = make_message(room, answer, "assistant", reply_to=question)
    return extraction_jobs.queue_extraction(
        workspace=room.workspace,
        user=person,
        chat_id=room.public_id,
        message_id=reply.public_id,
        source_type="auto_chat",
        now=timezone.now(),
    )


def mine(extraction: Extraction) -> Extraction:
    tasks.extract_turn(extraction_id=extraction.pk)
    extraction.refresh_from_db()
    return extraction


def test_replies_as_models_give_them_are_parsed() -> None:
    """Invented statements are parsed too; the next test checks that they are not stored."""
    assert len(REPLIES) >= 60
    for said, reply, stored, waiting in REPLIES:
        if reply not in NOTHING[-2:]:
            assert {each.text for each in parse_candidates(reply)} == stored | waiting, (said, reply)


def test_replies_as_models_give_them_are_stored(scripted_model: ScriptedOpenAI, olive: User) -> None:
    """Store what one reply of each group says, and what all that invent something say."""
    wrong = []
    groups = [(SAID, group[0], FAIR, set()) for group in (DRESSED, COERCED, NEARLY)]
    nothing = [(SAID, reply, set(), set()) for reply in (NOTHING[0], *NOTHING[-5:])]
    for said, reply, stored, waiting in [*groups, (SAID, CUT[0], {VEG}, set()), *nothing, *INVENTED]:
        scripted_model.script(Answer(reply), Answer(reply))
        mined = mine(turn(olive, said))
        scripted_model.unscript()
        live = set(Memory.objects.filter(deleted_at=None).values_list("content", flat=True))
        proposed = set(Memory.objects.filter(review="pending").values_list("content", flat=True))
        says_a_word = bool(without_thoughts(reply).strip())  # a reply with thoughts alone is retried later
        if (live, proposed) != (stored, waiting) or (mined.status == "done") is not says_a_word:
            wrong.append((reply, live, proposed, mined.status))
        Memory.objects.all().delete()
    assert not wrong


@pytest.mark.django_db(transaction=True)
def test_replies_that_could_not_be_read_are_counted_for_the_admin(
    scripted_model: ScriptedOpenAI, olive: User
) -> None:
    for reply in ("The user seems nice!", '[{"text": "User is veg', "[]", json.dumps([entry(VEG)])):
        scripted_model.script(Answer(reply))
        assert mine(turn(olive, SAID)).status == "done"
        scripted_model.unscript()
    assert list(Refusal.objects.values_list("kind", "source_type", "number")) == [("unread", "auto_chat", 2)]
    assert list(Refusal.objects.values_list("kind", "number")) == [("unread", 2)]


def test_what_the_model_is_told_of_a_turn(scripted_model: ScriptedOpenAI, olive: User) -> None:
    before = ("Too long ago", "Yes", "I am moving", "Where to?", "Lisbon <b>", "Is it for good?")
    extraction = turn(olive, "Yes, exactly.", before=before)
    saved = Draft(
        content="User likes tea", workspace=extraction.workspace, author=olive, source_type="model",
        source_message_id=extraction_jobs.load_turn(extraction.message_id, "auto_chat", olive).user_message_id,  # type: ignore[union-attr]
    )  # fmt: skip
    save_memory(saved, by=olive, now=timezone.now())
    scripted_model.script(Answer('{"memories": []}'))
    mine(extraction)
    (request,) = scripted_model.chat_requests
    assert request.body["response_format"] == {"type": "json_object"}
    asked = "\n".join(f"=== {each['role']}\n{each['content']}\n" for each in request.messages)
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(asked)
    assert asked == GOLDEN.read_text()


def test_a_connection_without_json_mode_is_asked_without(scripted_model: ScriptedOpenAI, olive: User) -> None:
    found = Answer(json.dumps([entry(VEG)]))
    scripted_model.script(Failure(400, "response_format is not supported"), found, Answer(""), found)
    assert mine(turn(olive, SAID)).stored_count == 1
    Memory.objects.all().delete()
    scripted_model.unscript()
    scripted_model.script(Answer(""), found)
    assert mine(turn(olive, SAID)).stored_count == 1, "one that says nothing in JSON mode is asked without"


def test_courtesies_cost_no_request(scripted_model: ScriptedOpenAI, olive: User) -> None:
    cases: list[tuple[str, tuple[str, ...], bool]] = [
        ("ok thanks", (), False),
        ("Ok, thank you very much!", ("Shall I book it?", "For May 1?"), False),
        ("👍", (), False),
        ("Guten Morgen!", (), False),
        ("谢谢", (), False),
        ("yes", ("Hi", "Hello."), False),
        ("Yes, exactly", ("It moves", "To May 1?"), True),
        ("네, 맞아요", ("이사해요", "서울로요?"), True),
        ("no meat, thanks", (), True),
        ("Good morning, I moved", (), True),
        ("42", (), True),
    ]
    scripted_model.respond = lambda request: Answer('{"memories": []}')
    for said, before, asked in cases:
        scripted_model.requests.clear()
        assert mine(turn(olive, said, before=before)).status == "done", said
        assert bool(scripted_model.chat_requests) is asked, said
        assert says_nothing(said, [("assistant", before[1])] if before else []) is not asked, said


def test_a_tools_save_and_the_extraction_of_its_turn_store_one_row(
    scripted_model: ScriptedOpenAI, olive: User
) -> None:
    cases = [
        ("I'm vegetarian", ("User is vegetarian", "The user is a vegetarian."), 1),
        ("Walnuts make me ill", ("User is allergic to walnuts", "User has a walnut allergy."), 1),
        ("Tea, not coffee", ("Prefers tea to coffee", "User prefers tea to coffee."), 1),
        ("My sister and I eat no meat", ("User is vegetarian", "User's sister is vegetarian."), 2),
        ("Due May 1 and May 2", ("The draft is due on May 1", "The draft is due on May 2"), 2),
        ("Anna and Ben play the cello", ("Anna plays the cello", "Ben plays the cello"), 2),
    ]
    for said, again, stored in cases:
        extraction = turn(olive, said)
        loaded = extraction_jobs.load_turn(extraction.message_id, "auto_chat", olive)
        assert loaded is not None, said
        saved = Draft(
            content=again[0],
            workspace=extraction.workspace,
            author=olive,
            source_type="model",
            source_message_id=loaded.user_message_id,
        )
        save_memory(saved, by=olive, now=timezone.now())
        scripted_model.script(Answer(json.dumps([entry(again[1])])))
        mined = mine(extraction)
        assert Memory.objects.filter(deleted_at=None).count() == stored, said
        assert mined.duplicate_count == 2 - stored, said
        if stored == 1:
            wordings = Memory.objects.get().revisions.filter(action="also_said")
            assert [each.before["content"] for each in wordings] == [again[1]], "a merge loses nothing"
        Memory.objects.all().delete()


SPOKEN = "My name is Zoë. Anna's budget is 1.500 € and she leaves in two weeks, on Friday at 14:30 for Wien."


def test_names_and_numbers_must_occur_in_what_was_said() -> None:
    cases = [
        ("Anna's budget is 1,500 euros", True),
        ("Anna's budget is 15,000 euros", False),
        ("User is Zoe\u0308", True),
        ("Annas Budget beträgt 1500 €", True),
        ("The user works with Anne-Marie", False),
        ("The user works with Ben", False),
        ("User uses OpenAI", False),
        ("Anna leaves on 2026-03-20", True),
        ("Anna leaves on 20 March 2026", True),
        ("Anna leaves on 2031-03-20", False),
        ("Anna has 20 cats", False),
        ("Olive leaves for Wien at 14:30", True),
        ("安娜的预算是1500", True),
        ("安娜的预算是１６００", False),
    ]
    for statement, grounded in cases:
        assert is_grounded(statement, said=[SPOKEN], today=DAY.date(), names="Olive") is grounded, statement
