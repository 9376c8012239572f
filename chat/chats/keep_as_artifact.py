"""Keeping an answer, or a piece of it, as an artifact."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext as _

from chat.chats.personal_memories import home_of
from chat.models import Message, MessageRole, MessageStatus
from chat.rendering.blocks import Block, blocks_of
from chat.rendering.markdown import Budget, TooHeavy
from chat.rendering.rendered import MESSAGE_STEPS
from memoryhub.errors import Conflict, Invalid, NotFound
from workspaces.artifacts import Source, Written, keep
from workspaces.models import Artifact, ArtifactKind, User
from workspaces.models.artifacts import LANGUAGE_LENGTH, TITLE_LENGTH


def keep_answer(
    answer: Message, *, block: int | None = None, by: User, now: datetime, confirmed: bool = False
) -> Artifact:
    """The whole answer as a text, or its code or table with this number, from 0 in the order in which they stand.

    Of a chat that only its creator sees it is theirs alone, and so is what rests on something personal. Raises
    NotFound where there is no such piece, Conflict while the answer is being written, and what ``artifacts.keep``
    raises.
    """
    if answer.role != MessageRole.ASSISTANT or not answer.content.strip():
        raise NotFound(_("Only answers can be kept."))
    if answer.status == MessageStatus.STREAMING:
        raise Conflict(_("The answer is still being written."))
    chat = answer.chat
    workspace, personal = home_of(chat, by, rests_on=answer)
    piece = Block(ArtifactKind.MARKDOWN, answer.content) if block is None else _piece(answer, block)
    return keep(
        workspace,
        Written(_title(piece, chat.title), piece.content, piece.language[:LANGUAGE_LENGTH]),
        kind=piece.kind,
        by=by,
        now=now,
        source=Source(chat.public_id, answer.public_id),
        personal=personal,
        confirmed=confirmed,
    )


def _piece(answer: Message, number: int) -> Block:
    try:
        found = blocks_of(answer.content, Budget(MESSAGE_STEPS))
    except TooHeavy:
        raise Invalid(_("This answer is too complex to be split. Keep all of it instead.")) from None
    if not 0 <= number < len(found):
        raise NotFound(_("There is no such piece in this answer."))
    return found[number]


def _title(piece: Block, chat_title: str) -> str:
    first = next((line.strip("#*_`>| ") for line in piece.content.splitlines() if line.strip("#*_`>| ")), "")
    title = piece.heading or (first if piece.kind == ArtifactKind.MARKDOWN else chat_title) or first
    cleaned = " ".join("".join(sign if sign.isprintable() else " " for sign in title).split())
    return cleaned[: TITLE_LENGTH // 2] or "Untitled"
