"""Registry of the modes. A new mode needs a name in ``chat.models.steps.Mode`` and a class listed here."""

from __future__ import annotations

from collections.abc import Callable

from django.utils.translation import gettext as _

from chat.models.steps import Mode
from chat.modes.base import AnswerMode
from chat.modes.deep_think import DeepThink
from chat.modes.research import Research
from memoryhub.errors import Invalid
from memoryhub.llm.base import Capabilities

MODES: dict[str, AnswerMode] = {mode.name: mode for mode in (AnswerMode(), DeepThink(), Research())}


def get_mode(name: str) -> AnswerMode:
    return MODES[name]


def modes_for(capabilities: Capabilities) -> list[AnswerMode]:
    """Return the modes that this model supports, chat first."""
    return [mode for mode in MODES.values() if mode.can(capabilities)]


def require_mode(name: str, capabilities: Callable[[], Capabilities]) -> None:
    """Raise Invalid for a mode that does not exist or that the model does not support. The error lists the allowed
    modes.

    The capabilities are loaded only for modes other than chat.
    """
    if name == Mode.CHAT:
        return
    mode, of_model = MODES.get(name), capabilities()
    if mode is None or not mode.can(of_model):
        why = mode.why_not if mode else _("There is no such mode.")
        allowed = ", ".join(each.name for each in modes_for(of_model))
        raise Invalid(why, fields={"mode": f"{why} " + _("Allowed: %s.") % allowed})


def or_plain(name: str, capabilities: Callable[[], Capabilities]) -> str:
    """Return this mode if the model supports it, else the chat mode."""
    return name if name == Mode.CHAT or MODES[name].can(capabilities()) else Mode.CHAT
