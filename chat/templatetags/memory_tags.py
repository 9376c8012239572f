"""Template tags and filters for memories: their scores, reasons and sources, and whether new chats use memory."""

from collections.abc import Iterable
from typing import Any

from django import template
from django.template import Context
from django.utils import timezone
from django.utils.translation import gettext_lazy

from chat.chats.personal_memories import chats_with_personal_data_of
from chat.models import Chat, Message
from chat.templatetags.ui import percent
from memories.access import memory_on, vetoed
from memories.models import Memory
from workspaces.models import Workspace

register = template.Library()

PART_NAMES = {
    "meaning": gettext_lazy("meaning"),
    "words": gettext_lazy("words"),
    "date": gettext_lazy("date asked for"),
    "time": gettext_lazy("says when"),
    "number": gettext_lazy("says how many"),
    "person": gettext_lazy("person"),
    "recency": gettext_lazy("how recent"),
    "importance": gettext_lazy("importance"),
}
REASONS = {
    "below the threshold": gettext_lazy("left out: not relevant enough"),
    "the message asks for nothing": gettext_lazy("left out: the message asks for nothing"),
    "no longer holds": gettext_lazy("left out: it no longer holds"),
    "replaced by a newer one": gettext_lazy("left out: a newer one has replaced it"),
    "over the limit": gettext_lazy("left out: others were more relevant"),
    "no room in the model's context": gettext_lazy("left out: too long for the model in use"),
    "others read this chat": gettext_lazy("left out: personal, and others read this chat"),
}


@register.filter
def why(parts: dict[str, float]) -> str:
    """Return the parts of a score and their sum as a text, the largest part first: “62 = meaning 42 + words 20”."""
    named = sorted(parts.items(), key=lambda part: -part[1])
    shown = [(PART_NAMES.get(name, name), percent(value)) for name, value in named if percent(value)]
    return f"{sum(value for _, value in shown)} = " + " + ".join(f"{name} {value}" for name, value in shown)


@register.filter
def reason_words(reason: str) -> str:
    return str(REASONS.get(reason, reason))


@register.filter
def is_new(memory: Memory) -> bool:
    """Return whether the memory was created within the last 15 seconds, to highlight it once."""
    return (timezone.now() - memory.created_at).total_seconds() < 15


MOST_NAMED = 20


@register.simple_tag(takes_context=True)
def source_chats(context: Context, memories: Iterable[Any]) -> dict[str, Chat]:
    """Return the chats that these memories came from, by id, without those that the user may not open. One query."""
    ids = {memory.source_chat_id for memory in memories if memory.source_chat_id}
    chats = Chat.objects.visible_to(context["request"].user).live().filter(public_id__in=ids)
    return {chat.public_id: chat for chat in chats}


@register.simple_tag
def edited_sources(memories: Iterable[Memory]) -> set[str]:
    """Return the ids of messages that memories came from and that were edited since. One query."""
    ids = {memory.source_message_id for memory in memories if memory.source_message_id}
    edited = Message.objects.filter(public_id__in=ids).exclude(superseded_by=None)
    return set(edited.values_list("public_id", flat=True))


@register.simple_tag(takes_context=True)
def given_sources(context: Context, memories: Iterable[Any]) -> dict[str, Chat]:
    """Map the chats and messages that API clients named as sources of these memories to the chats to link to. Two
    queries.

    The memories must have the attribute ``origins``, which ``memories.views.panel_context.on_cards`` sets.
    """
    ids = {source.source_id for memory in memories for source in memory.origins}
    chats = Chat.objects.visible_to(context["request"].user).live()
    chats_by_id = {chat.public_id: chat for chat in chats.filter(public_id__in=ids)}
    messages = Message.objects.filter(public_id__in=ids, chat__in=chats).readable_by(context["request"].user)
    messages = messages.select_related("chat").defer("content")
    return chats_by_id | {message.public_id: message.chat for message in messages}


@register.simple_tag(takes_context=True)
def chats_with_own(context: Context, workspace: Workspace) -> list[Chat]:
    """Return the newest chats that others can read and with an answer from this user's personal data. One query."""
    return list(chats_with_personal_data_of(context["request"].user, workspace)[:MOST_NAMED])


register.simple_tag(vetoed, name="memory_vetoed")


@register.simple_tag(takes_context=True)
def memory_on_by_default(context: Context) -> bool:
    """Return whether new chats of the user have memory on, by the user's setting, else by the operator's."""
    return memory_on(context["request"].user, None)
