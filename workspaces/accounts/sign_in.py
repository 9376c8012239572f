"""How people get in: what allauth asks us, and what we note when somebody does."""

from __future__ import annotations

from typing import Any

from allauth.account import signals as account
from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.decorators import reauthentication_required
from allauth.core.exceptions import ReauthenticationRequired
from allauth.mfa import signals as mfa
from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib.auth import signals as auth
from django.contrib.auth.models import AnonymousUser
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone

from memoryhub import mail
from memoryhub.errors import Conflict, Forbidden
from memoryhub.http import origin
from workspaces.accounts import sessions
from workspaces.accounts.usernames import check_username
from workspaces.audit import Verb, Word, record
from workspaces.models import SignIn, User

BY_CODE = "mfa_reauthenticate"
MOST_UNKNOWN = 30  # failed sign-ins under names that nobody has, noted in a minute


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return settings.SIGNUP_OPEN

    def get_client_ip(self, request: HttpRequest) -> str:
        """One rule for all: limits count by the same address that the audit log tells."""
        return origin.client_address(request) or "0.0.0.0"  # noqa: S104  (a name for all whose address is unknown)

    def clean_username(self, username: str, shallow: bool = False) -> str:
        cleaned: str = super().clean_username(username, shallow)
        if not shallow:
            check_username(cleaned, User.objects.all())
        return cleaned

    def save_user(self, *args: Any, **kwargs: Any) -> User:
        try:
            return super().save_user(*args, **kwargs)
        except ValidationError as error:  # a name that somebody else took in this moment
            raise Conflict(error.messages[0]) from None

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        with mail.failures_logged():
            super().send_mail(template_prefix, email, context)

    def get_reauthentication_methods(self, user: User | AnonymousUser) -> list[dict[str, Any]]:
        """With two-factor sign-in on, a code alone shows that it is you: a password may be what was stolen."""
        methods: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        return [method for method in methods if method["id"] == BY_CODE] or methods


def note_not_shown(user: User, *, method: str) -> None:
    """Somebody in this person's session could not show that it is them."""
    record(Verb.REAUTHENTICATION_FAILED, by=user, details={"method": method})


def has_two_factor(request: HttpRequest) -> bool:
    return is_mfa_enabled(request.user)


def typed_password_lately(request: HttpRequest) -> bool:
    """Whether this session's person has shown again in the last minutes, after signing in, that it is them."""
    try:
        reauthentication_required(lambda request: None)(request)
    except ReauthenticationRequired:
        return False
    return True


def ask_for_password(request: HttpRequest) -> None:
    """For a page on which something goes for good: who has not shown lately that it is them is asked first."""
    if not typed_password_lately(request):
        raise ReauthenticationRequired


def require_fresh_password(request: HttpRequest) -> None:
    """The same at a REST door, where nobody can be sent elsewhere: Forbidden with the code ``reauthenticate``."""
    if not typed_password_lately(request):
        raise Forbidden(
            "This cannot be undone and needs your password once more: type it at /accounts/reauthenticate/ "
            "and send this again.",
            code="reauthenticate",
        )


# What is noted. Django's signals come with every sign-in, allauth's only with those through its pages.


def _opened(sender: Any, request: HttpRequest, user: User, **kwargs: Any) -> None:
    sessions.note(request, user, now=timezone.now())


def _signed_in(sender: Any, request: HttpRequest, user: User, **kwargs: Any) -> None:
    methods = request.session.get("account_authentication_methods", [])
    by_code = any(method.get("method") == "mfa" for method in methods)
    record(Verb.SIGNED_IN, by=user, details={"two_factor": by_code})


def _failed(
    sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **kwargs: Any
) -> None:
    """Whose account was tried, if it is one: what was typed is not kept, it may be a password in the wrong field.

    Of one account no more come than its limits let through; of names that nobody has ``MOST_UNKNOWN`` a minute, so
    that a flood of them from many addresses does not fill the log.
    """
    person = getattr(request, "user", None)
    if person is not None and person.is_authenticated:
        note_not_shown(person, method="password")
        return
    name = str(credentials.get("username") or credentials.get("email") or "")[:254].replace("\x00", "")
    tried = User.objects.filter(Q(username=name) | Q(email__iexact=name)).first() if name else None
    if tried is not None:
        record(Verb.SIGN_IN_FAILED, by=None, target=tried.public_id)
    elif (number := _unknown_this_minute()) <= MOST_UNKNOWN:
        last: dict[str, Word | list[Word]] = {"more": "not_noted"} if number == MOST_UNKNOWN else {}
        record(Verb.SIGN_IN_FAILED, by=None, details=last)


def _unknown_this_minute() -> int:
    """Which number this one is; over all processes, and off by a few when many come at once."""
    key = f"unknown-sign-ins:{timezone.now():%Y%m%d%H%M}"
    cache.add(key, 0, timeout=120)
    return cache.incr(key)


def _failed_code(sender: Any, user: User, reauthentication: bool = False, **kwargs: Any) -> None:
    if reauthentication:
        note_not_shown(user, method="code")
    else:
        record(Verb.SIGN_IN_FAILED, by=None, target=user.public_id, details={"step": "code"})


def _signed_out(sender: Any, request: HttpRequest, user: User | None, **kwargs: Any) -> None:
    SignIn.objects.filter(session_key=request.session.session_key or "").delete()
    if user is not None:
        record(Verb.SIGNED_OUT, by=user)


def _signed_up(sender: Any, user: User, **kwargs: Any) -> None:
    record(Verb.SIGNED_UP, by=user)


def _shown_again(sender: Any, user: User, method: str, reauthenticated: bool = False, **kwargs: Any) -> None:
    if reauthenticated:
        record(Verb.REAUTHENTICATED, by=user, details={"method": method})


def _new_password(sender: Any, request: HttpRequest, user: User, signal: Any, **kwargs: Any) -> None:
    """Whoever else knew the old one is out at once, also of pages that are open."""
    reset = signal is account.password_reset
    record(Verb.PASSWORD_RESET if reset else Verb.PASSWORD_CHANGED, by=user)
    sessions.end_other_sessions(user, keep=None if reset else request.session.session_key, by=user)
    if not reset:
        sessions.note(request, user, now=timezone.now())


def _two_factor(sender: Any, user: User, authenticator: Authenticator, signal: Any, **kwargs: Any) -> None:
    if authenticator.type == Authenticator.Type.TOTP:
        record(Verb.TWO_FACTOR_ON if signal is mfa.authenticator_added else Verb.TWO_FACTOR_OFF, by=user)
    elif signal is not mfa.authenticator_removed:
        record(Verb.RECOVERY_CODES_MADE, by=user)


def connect() -> None:
    """At start, once the apps are ready."""
    for signal, receiver in (
        (auth.user_logged_in, _opened),
        (auth.user_logged_out, _signed_out),
        (auth.user_login_failed, _failed),
        (account.user_logged_in, _signed_in),
        (account.user_signed_up, _signed_up),
        (account.authentication_step_completed, _shown_again),
        (account.password_changed, _new_password),
        (account.password_set, _new_password),
        (account.password_reset, _new_password),
        (mfa.authenticator_added, _two_factor),
        (mfa.authenticator_removed, _two_factor),
        (mfa.authenticator_reset, _two_factor),
        (mfa.authentication_failed, _failed_code),
    ):
        signal.connect(receiver, dispatch_uid=f"workspaces.accounts.sign_in.{receiver.__name__}")
