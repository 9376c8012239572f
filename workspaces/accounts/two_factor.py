"""Two-factor sign-in: which users need it, encryption of its secrets, and codes that work only once."""

import base64
import logging
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from allauth.mfa import app_settings
from allauth.mfa.adapter import DefaultMFAAdapter, get_adapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib import messages as notices
from django.core.cache import cache
from django.core.exceptions import MiddlewareNotUsed
from django.db import transaction
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from memoryhub import encryption
from memoryhub.errors import Forbidden
from memoryhub.http.middleware import answer_error, speaks_json
from workspaces.models import User

logger = logging.getLogger(__name__)
ENTRANCE = "/accounts/"  # pages to sign in and out, re-authenticate, and set up two-factor sign-in


def is_required_of(user: User) -> bool:
    """Return whether the setting MEMORYHUB_TWO_FACTOR requires two-factor sign-in of this user."""
    return settings.TWO_FACTOR == "everyone" or (settings.TWO_FACTOR == "staff" and user.is_staff)


class TwoFactorMiddleware:
    """Middleware that makes users set up two-factor sign-in if it is required. Pages redirect, APIs return an error.

    Requests with an API key or token instead of a session pass, because only a user who has set it up can create one.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        if settings.TWO_FACTOR == "optional":
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, *arguments: Any) -> HttpResponseBase | None:
        user = request.user
        if not isinstance(user, User) or not is_required_of(user) or request.path.startswith(ENTRANCE):
            return None
        if not getattr(view, "login_required", True) and not speaks_json(request.path):
            return None
        if is_mfa_enabled(user):
            return None
        if speaks_json(request.path) or getattr(request, "htmx", False):
            message = _("Set up two-factor sign-in first, at /accounts/two-factor/totp/activate/.")
            return answer_error(request, Forbidden(message, code="two_factor"))
        notices.info(request, _("You need two-factor sign-in here. Set it up to go on."))
        return redirect("mfa_activate_totp")


class MfaAdapter(DefaultMFAAdapter):
    def can_delete_authenticator(self, authenticator: Authenticator) -> bool:
        return not is_required_of(authenticator.user)

    def encrypt(self, text: str) -> str:
        return encryption.seal(text)

    def decrypt(self, encrypted_text: str) -> str:
        """Decrypt a secret. If no current key decrypts it, return a random secret, which no code matches."""
        try:
            return encryption.unseal(encrypted_text)
        except encryption.Unsealable:
            logger.error(
                "A two-factor secret was sealed with a key that is gone; its person cannot use it any more."
            )
            return base64.b32encode(secrets.token_bytes(20)).decode()  # no code matches it


def rewrite_secrets(rows: Any, change: Callable[[str], str]) -> int:
    """Replace each secret in the authenticators ``rows`` by the result of ``change``. Return the number of rows
    changed.

    ``rows`` may be a queryset of historical models in a migration.
    """
    number = 0
    with transaction.atomic():
        for row in rows.select_for_update().order_by("pk").iterator():
            data = dict(row.data)
            for name in data.keys() & {"secret", "seed"}:
                data[name] = change(data[name])
            if "migrated_codes" in data:
                data["migrated_codes"] = [change(code) for code in data["migrated_codes"]]
            if data != row.data:
                row.data, number = data, number + 1
                row.save(update_fields=["data"])
    return number


def reseal() -> int:
    """Encrypt every secret with the first current key. Return the number of rows changed.

    A secret that no key decrypts is left unchanged.
    """

    def anew(sealed: str) -> str:
        try:
            return encryption.reseal(sealed)
        except encryption.Unsealable:
            return sealed

    return rewrite_secrets(Authenticator.objects.all(), anew)


if TYPE_CHECKING:
    from allauth.mfa.base.forms import AuthenticateForm as Base
else:
    Base = object


class UsedOnce(Base):
    """Form mixin that refuses a code that this user has used before, for as long as the code is valid.

    allauth itself refuses a used code only for a third of that time. It does not refuse the code that was used to set
    up two-factor sign-in.
    """

    def clean_code(self) -> str:
        """Return the code, or raise a validation error if this user has used it before."""
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
