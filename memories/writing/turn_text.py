"""Where extraction gets a turn's text. Memories know nothing of chats: the chat app registers how to load one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from memories.judging.extraction.provenance import NOTHING, Provenance
from workspaces.models import User, Workspace
from workspaces.models.connections import Connection


@dataclass(frozen=True)
class TurnText:
    """What one finished turn said: (role, text) of its user and assistant messages, in order, and its surroundings."""

    messages: tuple[tuple[str, str], ...]
    user_message_id: str
    excerpt: str  # the messages around the user's: two before, one after
    is_private: bool = False  # of a chat that only its creator sees: so is what is noticed in it
    is_personal: bool = False  # its answer may rest on something of somebody's own, as what rests on it does
    said_by: User | None = None  # who asked, whoever had it answered again
    is_output: bool = False  # not said by anybody: what a tool, a summary or long thinking came to
    earlier: tuple[
        tuple[str, str], ...
    ] = ()  # (role, text) of what was said before: never mined, only understood by
    said_at: datetime | None = None
    said_before: str = ""  # the message before, if the same person said it
    provenance: Provenance = NOTHING  # all that the model had before it: never mined, only compared with
    stays_here: bool = False  # it rests on text that never leaves this machine: no model elsewhere reads it
    connection: Connection | None = None  # the one chosen for its chat
    workspace: Workspace | None = None  # of its chat; None: the extraction's own


TurnLoader = Callable[[str, str, User | None], TurnText | None]
MessageLoader = Callable[[str, User | None], TurnText | None]
_turn_loader: list[TurnLoader] = []
_message_loader: list[MessageLoader] = []


def register_loaders(*, turn: TurnLoader, message: MessageLoader) -> None:
    """``turn`` loads what an extraction of some source type mines, by the public id it is noted under and whose turn
    it was; ``message`` any message by its own, for a person who may see it. None where it is gone or off limits.
    """
    _turn_loader[:], _message_loader[:] = [turn], [message]


def load_turn(public_id: str, source_type: str, by: User | None) -> TurnText | None:
    return _turn_loader[0](public_id, source_type, by)


def load_message(message_id: str, reader: User | None) -> TurnText | None:
    return _message_loader[0](message_id, reader)
