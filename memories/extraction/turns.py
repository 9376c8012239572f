"""Where extraction gets a turn's text. Memories know nothing of chats: the chat app registers how to load one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class TurnText:
    """What one finished turn said: (role, text) of its user and assistant messages, in order, and its surroundings."""

    messages: tuple[tuple[str, str], ...]
    user_message_id: str
    excerpt: str  # the messages around the user's: two before, one after
    is_private: bool = False  # of a chat that only its creator sees: so is what is noticed in it


Loader = Callable[[str], TurnText | None]
_loaders: dict[str, Loader] = {}


def register_loaders(*, turn: Loader, message: Loader) -> None:
    """``turn`` loads by an answer's public id, ``message`` by any message's; None where it is gone or off limits."""
    _loaders.update(turn=turn, message=message)


def load_turn(answer_id: str) -> TurnText | None:
    return _loaders["turn"](answer_id)


def load_message(message_id: str) -> TurnText | None:
    return _loaders["message"](message_id)
