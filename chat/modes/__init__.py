"""How an answer is made: as in any chat, or thought through. What a model is too small for is not offered."""

from __future__ import annotations

from chat.models.steps import Mode
from memoryhub.errors import Invalid
from memoryhub.llm.base import Capabilities


def can_think(capabilities: Capabilities) -> bool:
    """A model too small to extract can neither plan nor compare (docs/decisions/0018)."""
    return capabilities.can_extract


def require_mode(mode: str, capabilities: Capabilities) -> None:
    """Raises Invalid, naming what is allowed, for a mode that there is not or that this model cannot do."""
    allowed = [Mode.CHAT.value, *([Mode.DEEP_THINK.value] if can_think(capabilities) else [])]
    if mode in allowed:
        return
    only = f"Allowed: {', '.join(allowed)}."
    if mode == Mode.DEEP_THINK:
        why = "The model in use is too small to plan an answer and to check it; a larger one has to be connected."
    else:
        why = "There is no such mode."
    raise Invalid(why, fields={"mode": f"{why} {only}"})
