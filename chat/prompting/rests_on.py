"""What an answer rests on: the other chats it is told of, and whether anything it is given is personal or local."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from chat.models import Chat, Compaction, Message, PersonalUse, ToolCall
from chat.prompting.other_chats import is_personal, stays_here
from chat.prompting.short_term import ShortTerm
from memories.models import Memory
from workspaces.documents.passages import FoundPassage
from workspaces.models import Document, Workspace


@dataclass
class RestsOn:
    """As it is stored with the answer (``Message``). Whatever is added, nothing is taken away."""

    other_chats: list[str] = field(default_factory=list)
    personal: str = PersonalUse.NONE
    stays_here: bool = False

    @classmethod
    def stored_with(cls, answer: Message) -> RestsOn:
        return cls(list(answer.other_chats), answer.personal, answer.stays_here)

    def add(self, *, held: bool = False, seen: bool = False, stays_here: bool = False) -> None:
        if held:
            self.personal = PersonalUse.HELD
        elif seen and not self.personal:
            self.personal = PersonalUse.SEEN
        self.stays_here = self.stays_here or stays_here

    def add_given(
        self, workspace_id: int, memories: Collection[Memory], passages: Sequence[FoundPassage] = ()
    ) -> None:
        """Memories and passages of documents, in this workspace. One query where one of them is of another."""
        given: list[Memory | Document] = [*memories, *(each.passage.document for each in passages)]
        places = {each.workspace_id for each in given} - {workspace_id}
        self.add(
            held=any(each.owner_id is not None for each in given),
            stays_here=bool(places) and Workspace.objects.filter(pk__in=places, local_only=True).exists(),
        )

    def add_short_term(self, chat: Chat, told: ShortTerm) -> None:
        for row in told.others:
            self.other_chats = list(dict.fromkeys([*self.other_chats, row.chat.public_id]))
            self.add(held=is_personal(row, chat), stays_here=stays_here(row, chat))
        if told.own is not None:
            self.add(seen=told.own.personal_at is not None, stays_here=told.own.stays_here)

    def add_history(self, keys: Collection[int], compaction: Compaction | None) -> None:
        """Answers of the same chat that were shown, or summarised, before this one. Two queries at most."""
        rows = Message.objects.filter(pk__in=keys).marked() if keys else Message.objects.none()
        if compaction is not None and compaction.is_marked:
            rows |= Message.objects.filter(chat=compaction.chat_id, pk__lte=compaction.upto_id).marked()
        for personal, is_here in rows.values_list("personal", "stays_here").distinct():
            self.add(seen=bool(personal), stays_here=is_here)


def note_tool_call(call: ToolCall, *, stays_here: bool) -> None:
    """Mark the answer by what a finished call was told. No query where that is nothing of the kind."""
    found = RestsOn()
    if call.memory_ids:
        place = Chat.objects.values_list("workspace_id", flat=True).get(messages=call.message_id)
        found.add_given(place, list(Memory.objects.filter(public_id__in=call.memory_ids)))
    found.add(held=call.held_personal, stays_here=stays_here)
    mark(call.message_id, found)


def mark(answer_pk: int, found: RestsOn) -> None:
    """Add to what is stored with an answer. It stays marked, whatever becomes of what it was given."""
    answer = Message.objects.filter(pk=answer_pk)
    if found.personal == PersonalUse.HELD:
        answer.update(personal=PersonalUse.HELD)
    elif found.personal:
        answer.filter(personal=PersonalUse.NONE).update(personal=found.personal)
    if found.stays_here:
        answer.update(stays_here=True)
