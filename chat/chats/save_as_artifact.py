"""Services that save an answer, or one of its code blocks or tables, as an artifact."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from chat.chats.personal_memories import workspace_for_saving
from chat.models import Message, MessageRole, MessageStatus
from chat.rendering.markdown import Budget, TooHeavy, parsed
from chat.rendering.stored_html import MESSAGE_STEPS
from memoryhub.errors import Conflict, Invalid, NotFound
from workspaces.artifacts import Source, Written, create_artifact
from workspaces.models import Artifact, ArtifactKind, User
from workspaces.models.documents import LANGUAGE_LENGTH, TITLE_LENGTH

MARKDOWN = {"markdown", "md"}


@dataclass(frozen=True)
class Block:
    """A code block, a table or a whole text. ``heading`` is the last heading before it."""

    kind: str
    content: str
    language: str = ""
    heading: str = ""


def blocks_of(text: str, budget: Budget) -> list[Block]:
    """Return the code blocks and tables of a Markdown text, in order. Raises TooHeavy if parsing is too expensive."""
    lines, blocks, heading = text.split("\n"), list[Block](), ""
    tokens = parsed(text, budget)
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "heading_open" and following is not None:
            heading = following.content
        elif token.type in ("fence", "code_block"):
            blocks.append(_code(token.content, token.info.split(":")[0].strip().lower(), heading))
        elif token.type == "table_open" and token.map:
            rows = "\n".join(line.strip().removeprefix(">").strip() for line in lines[slice(*token.map)])
            blocks.append(Block(ArtifactKind.TABLE, rows, heading=heading))
    return blocks


def _code(content: str, language: str, heading: str) -> Block:
    begins = content.lstrip()[:15].lower()
    if language == "html" or (not language and begins.startswith(("<!doctype html", "<html"))):
        return Block(ArtifactKind.HTML, content, heading=heading)
    if language in MARKDOWN:
        return Block(ArtifactKind.MARKDOWN, content, heading=heading)
    return Block(ArtifactKind.CODE, content, language.split()[0] if language else "", heading)


def save_answer(
    answer: Message, *, block: int | None = None, by: User, now: datetime, confirmed: bool = False
) -> Artifact:
    """Save the whole answer as a Markdown artifact, or only its code block or table with the index ``block``.

    Return the existing artifact if ``by`` saved the same text before. ``confirmed``: the user confirmed a text that
    looks like a credential or a private number. Raises NotFound if there is no such block, Conflict while the answer is
    being written, and the errors of ``workspace_for_saving`` and ``create_artifact``.
    """
    if answer.role != MessageRole.ASSISTANT or not answer.content.strip():
        raise NotFound(_("Only answers can be saved as artifacts."))
    if answer.status == MessageStatus.STREAMING:
        raise Conflict(_("The answer is still being written."))
    chat = answer.chat
    workspace, personal = workspace_for_saving(chat, by, answer=answer)
    piece = Block(ArtifactKind.MARKDOWN, answer.content) if block is None else _piece(answer, block)
    mine = Artifact.objects.visible_to(by).live().filter(created_by=by, source_message_id=answer.public_id)
    with transaction.atomic():
        # Locked, so that two requests at once save one artifact.
        if not Message.objects.select_for_update(no_key=True).filter(pk=answer.pk):
            raise NotFound(_("This answer no longer exists."))
        if saved := mine.filter(kind=piece.kind, content=piece.content.replace("\r\n", "\n")).first():
            return saved
        return create_artifact(
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
        blocks = blocks_of(answer.content, Budget(MESSAGE_STEPS))
    except TooHeavy:
        raise Invalid(_("This answer is too complex to be split. Save all of it instead.")) from None
    if not 0 <= number < len(blocks):
        raise NotFound(_("There is no such piece in this answer."))
    return blocks[number]


def _title(piece: Block, chat_title: str) -> str:
    lines = (line.strip("#>| ").removeprefix("```") for line in piece.content.splitlines())
    first = next((line for line in lines if line.strip("*_`")), "")
    title = piece.heading or (first if piece.kind == ArtifactKind.MARKDOWN else chat_title) or first
    if piece.kind == ArtifactKind.MARKDOWN or piece.heading:
        title = _without_markup(title)
    cleaned = " ".join("".join(sign if sign.isprintable() else " " for sign in title).split())
    return cleaned[: TITLE_LENGTH // 2] or "Untitled"


def _without_markup(line: str) -> str:
    """Return a line of Markdown as plain text: "A **bold** word" as "A bold word"."""
    try:
        tokens = parsed(line, Budget(MESSAGE_STEPS), inline=True)
    except TooHeavy:
        return line
    pieces = (piece for token in tokens for piece in token.children or [])
    return "".join(piece.content for piece in pieces if piece.type in ("text", "code_inline")) or line
