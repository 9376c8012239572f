"""Sensitive text: a credential or a private number is kept only if a person confirms, never of a model or file.

What does look so is judged above, with memories, which register it here.
"""

from __future__ import annotations

from collections.abc import Callable

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later

from memoryhub.errors import SecretRefused


class LooksDelicate(SecretRefused):
    """A person may have it kept all the same, if they say so once more."""

    code = "sensitive"
    default_message = later(
        "This looks as if it holds a password, a key or a private number, so it has not been kept. "
        "Confirm it to keep it anyway."
    )


_judges: list[Callable[[str], bool]] = []


def register_judge(is_delicate: Callable[[str], bool]) -> None:
    if is_delicate not in _judges:
        _judges.append(is_delicate)


def refuse_delicate(before: str, after: str, *, may_ask: bool) -> None:
    """Looks at the lines of ``after`` that ``before``, which is kept already, has not.

    Raises SecretRefused naming the field, or LooksDelicate where there is a person to ask.
    """
    known = set(before.splitlines())
    new = "\n".join(line for line in after.splitlines() if line not in known)
    if any(is_delicate(new) for is_delicate in _judges):
        wrong = {"content": _("looks like a credential or a private number")}
        raise LooksDelicate(fields=wrong) if may_ask else SecretRefused(fields=wrong)
