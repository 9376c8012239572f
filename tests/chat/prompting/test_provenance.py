"""The speakers whose words are compared with what a turn would store, and the author it is stored under."""

from typing import Any

import pytest
from django.utils import timezone

from chat.models import Message, MessageRole, ToolCall
from chat.models.answer_steps import Step, StepKind
from chat.prompting.provenance import provenance_until
from memories.models import Extraction, Memory, Receipt
from memories.writing.extraction_jobs import extract, queue_extraction
from tests.conftest import Cast
from tests.factories import make_chat, make_memory, make_message
from workspaces.models import Membership, User

SECRET = "Heliotrope Marzipan is the name of the merger"
SAID = "My project deadline is March 15."
pytestmark = pytest.mark.django_db


def shown_in_a_turn_of_the_owner(cast: Cast, how: str, **fields: Any) -> Message:
    """Create a shared chat whose last answer used a memory of the owner's. Return the answer."""
    memory = make_memory(SECRET, cast.owner, cast.workspace, **fields)
    chat = make_chat(cast.owner, cast.workspace)
    answer = make_message(
        chat, "Noted.", MessageRole.ASSISTANT, reply_to=make_message(chat, "What do we call it?")
    )
    if how == "receipt":
        receipt = Receipt.objects.create(
            message_id=answer.public_id,
            workspace=cast.workspace,
            user=cast.owner,
            ranking="hybrid",
            threshold=0.3,
        )
        receipt.items.create(memory=memory, position=1, score=0.5, content=SECRET, used=True)
    elif how == "step":
        Step.objects.create(message=answer, kind=StepKind.values[0], memory_ids=[memory.public_id])
    else:
        output = SECRET if how == "output" else ""
        ToolCall.objects.create(message=answer, name="find", memory_ids=[memory.public_id], output=output)
    return answer


def shown_to(answer: Message, by: User | None) -> str:
    return "\n".join(each.text or "" for each in provenance_until(answer, by).sources)


def test_personal_memory_is_a_source_for_its_owner_only_and_a_shared_one_for_all(cast: Cast) -> None:
    for how in ("receipt", "step", "call", "output"):
        personal = shown_in_a_turn_of_the_owner(cast, how, scope="user")
        assert SECRET in shown_to(personal, cast.owner), how
        assert SECRET not in shown_to(personal, cast.editor), how
        assert SECRET not in shown_to(personal, None), how
        shared = shown_in_a_turn_of_the_owner(cast, how)
        assert SECRET in shown_to(shared, cast.editor), how


def mined_after_a_retry(cast: Cast, by: User) -> Memory:
    chat = make_chat(cast.editor, cast.workspace)
    answer = make_message(chat, "Noted.", MessageRole.ASSISTANT, reply_to=make_message(chat, SAID))
    extraction: Extraction = queue_extraction(
        workspace=cast.workspace,
        user=by,
        chat_id=chat.public_id,
        message_id=answer.public_id,
        source_type="auto_chat",
        now=timezone.now(),
    )
    extract(extraction.pk, now=timezone.now())
    return Memory.objects.get()


def test_who_has_it_answered_again_is_not_who_said_it(cast: Cast) -> None:
    assert mined_after_a_retry(cast, cast.owner).author == cast.editor


def test_who_said_it_and_left_is_no_author_nor_is_who_asked_again(cast: Cast) -> None:
    Membership.objects.filter(workspace=cast.workspace, user=cast.editor).delete()
    assert mined_after_a_retry(cast, cast.owner).author is None
