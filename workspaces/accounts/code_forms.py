"""Forms that take a two-factor code: each code of an authenticator app counts once, whichever of them took it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allauth.mfa import app_settings
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.totp.forms import ActivateTOTPForm
from django.core.cache import cache

if TYPE_CHECKING:
    from allauth.mfa.base.forms import AuthenticateForm as Base
else:
    Base = object


class UsedOnce(Base):
    """A form that refuses a used code for as long as the code is valid.

    allauth remembers it for half a minute, a third of that, and never the code that activates two-factor sign-in.
    """

    def clean_code(self) -> str:
        """Raise a validation error for a code that this person has used."""
        code: str = super().clean_code()
        used = f"two-factor:used:{self.user.pk}:{''.join(filter(str.isalnum, code))}"
        seconds = app_settings.TOTP_PERIOD * (2 * app_settings.TOTP_TOLERANCE + 1)
        if not cache.add(used, "y", timeout=seconds):
            raise get_adapter().validation_error("incorrect_code")
        return code


class ActivateForm(UsedOnce, ActivateTOTPForm):
    pass


class SignInForm(UsedOnce, AuthenticateForm):
    pass


class ProveForm(UsedOnce, ReauthenticateForm):
    pass
