"""Whose words a model had before it: those of the chat's people, and what it was shown that none of them said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Q

from chat.chats.personal_memories import personal_allowed
from chat.models import Chat, Message, MessageRole, ToolCall, ToolOutcome
from chat.models.steps import Step
from chat.prompting.short_term import recent
from memories.judging.extraction.provenance import is_taken_from
from memories.models import Memory, ReceiptItem
from workspaces.leaving_machine import Reach
from workspaces.models import User

MESSAGES, ANSWERS = 60, 10  # looked back at


@dataclass(frozen=True)
class Attribution:
    said: tuple[str, ...]
    # Recalled memories, what tools found, reports from the web, an assistant's instructions, other chats in short.
    shown: tuple[str, ...]

    def is_taken(self, statement: str) -> bool:
        return is_taken_from(statement, said=self.said, shown=self.shown)


def attribution_until(last: Message, by: User | None) -> Attribution:
    """Up to this message. Eleven queries at most.

    ``by``: whose turn it is. Personal memories of others are left out, though they were shown in turns of theirs: what
    is compared with them would tell ``by`` what they say.
    """
    readable = Q(owner=None) | Q(owner=by, owner__isnull=False)
    before = Message.objects.filter(chat_id=last.chat_id, pk__lte=last.pk).order_by("-pk")
    said = before.filter(role=MessageRole.USER).values_list("content", flat=True)[:MESSAGES]
    answers = dict(before.filter(role=MessageRole.ASSISTANT).values_list("pk", "public_id")[:ANSWERS])
    recalled = ReceiptItem.objects.filter(receipt__message_id__in=answers.values(), used=True)
    recalled = recalled.filter(memory__in=Memory.objects.filter(readable))
    shown = list(recalled.values_list("content", flat=True))
    from_web = Message.objects.filter(pk__in=answers, runs__web_urls__len__gt=0).distinct()
    shown += from_web.values_list("content", flat=True)
    # What the model noted or saved, anew or again, is its own and was looked at then. Of calls made side by side one
    # would otherwise wait for review since it resembles another. Whatever else a tool came to was shown to it.
    own = (ToolOutcome.NOTED, ToolOutcome.SAVED, ToolOutcome.DUPLICATE)
    calls = ToolCall.objects.filter(message_id__in=answers).exclude(outcome__in=own)
    steps = Step.objects.filter(message_id__in=answers)
    found = {each for ids in steps.values_list("memory_ids", flat=True) for each in ids}
    outputs = list(calls.values_list("memory_ids", "output"))
    found.update(each for ids, _output in outputs for each in ids)
    if found:
        memories = Memory.objects.filter(public_id__in=found)
        shown += memories.filter(readable).values_list("content", flat=True)
        found = set(memories.exclude(readable).values_list("public_id", flat=True))
    shown += [output for ids, output in outputs if output and found.isdisjoint(ids)]
    return Attribution(tuple(said), (*shown, *_set_before_it(last, by)))


def _set_before_it(last: Message, by: User | None) -> Iterator[str]:
    """What stands in the prompt of every turn: the assistant's instructions, and what other chats are about."""
    chat = Chat.objects.select_related("agent", "workspace").get(pk=last.chat_id)
    if chat.agent is not None:
        yield chat.agent.instructions
    if by is not None:
        personal = personal_allowed(chat, by)
        reach = Reach.to_model(chat.workspace, is_local=True, personal=personal)
        for other in recent(chat, by, reach=reach, now=last.created_at)[1]:
            yield from (other.chat.title, other.summary, *(text for _role, text in other.last_said))
