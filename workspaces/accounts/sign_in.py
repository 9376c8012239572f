"""Sign-in: the adapter for allauth, and audit records of sign-ins."""

from contextlib import suppress
from string import digits
from typing import Any, cast

from allauth.account import signals as account
from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa import signals as mfa
from allauth.mfa.models import Authenticator
from allauth.socialaccount import signals as social
from django.conf import settings
from django.contrib.auth import signals as auth
from django.contrib.auth.models import AnonymousUser
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import get_random_string
from django.utils.translation import gettext as _

from memoryhub import mail
from memoryhub.errors import Conflict
from memoryhub.monitoring import request_origin
from workspaces.access import default_workspace
from workspaces.accounts import program_authorizations, sessions
from workspaces.accounts.reauthentication import BY_CODE, record_failed_reauthentication
from workspaces.accounts.single_sign_on import apply_groups, of_directory
from workspaces.audit import Verb, Word, record
from workspaces.models import SignIn, User
from workspaces.models.users import ALIKE, check_username

MOST_UNKNOWN = 30  # failed sign-ins with unknown names that are recorded per minute


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return settings.SIGNUP_OPEN

    def get_client_ip(self, request: HttpRequest) -> str:
        """Return the client's address, as in the audit log. allauth's rate limits use it."""
        return request_origin.client_address(request) or "0.0.0.0"  # noqa: S104  (stands for all unknown addresses)

    def clean_username(self, username: str, shallow: bool = False) -> str:
        cleaned: str = super().clean_username(username, shallow)
        if not shallow:
            check_username(cleaned, User.objects.all())
        return cleaned

    def generate_unique_username(self, txts: list[str | None], regex: str | None = None) -> str:
        """Return a user name for single sign-on that does not look like another user's.

        Raises Conflict if none is found.
        """
        name: str = super().generate_unique_username(txts, regex)
        for candidate in (
            name,
            *(f"{name[:100]}-{get_random_string(length, digits)}" for length in range(2, 7)),
        ):
            with suppress(ValidationError):
                return self.clean_username(candidate)
        raise Conflict(ALIKE)

    def save_user(self, *args: Any, **kwargs: Any) -> User:
        try:
            return super().save_user(*args, **kwargs)
        except ValidationError as error:  # another sign-up took the name concurrently
            raise Conflict(error.messages[0]) from None

    def authenticate(self, request: HttpRequest, **credentials: Any) -> User | None:
        """Authenticate by password. For a signed-in user this is re-authentication, which works even if password
        sign-in is off.
        """
        if request.user.is_authenticated:
            return super().authenticate(request, **credentials)
        if not shows_passwords():
            raise ValidationError(_("Passwords are switched off here. Use single sign-on."))
        user = super().authenticate(request, **credentials)
        return user if user is not None and may_use_password(user) else None

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        with mail.failures_logged():
            super().send_mail(template_prefix, email, context)

    def get_login_stages(self) -> list[str]:
        ours = {
            "allauth.account.stages.EmailVerificationStage": "workspaces.accounts.sign_up.FirstAddressStage"
        }
        return [ours.get(stage, stage) for stage in super().get_login_stages()]

    def get_reauthentication_methods(self, user: User | AnonymousUser) -> list[dict[str, Any]]:
        """Return the ways to re-authenticate: only the code if two-factor sign-in is set up, because the password may
        be stolen.
        """
        methods: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        return [method for method in methods if method["id"] == BY_CODE] or methods


# Audit records. Django's signals are sent at every sign-in, allauth's only by its own pages.


def _opened(sender: Any, request: HttpRequest, user: User, **kwargs: Any) -> None:
    sessions.record_use(request, user, now=timezone.now())


def _signed_in(sender: Any, request: HttpRequest, user: User, **kwargs: Any) -> None:
    methods = request.session.get("account_authentication_methods", [])
    ways = {method.get("method") for method in methods}
    details: dict[str, Word | list[Word]] = {"two_factor": "mfa" in ways}
    if "socialaccount" in ways:
        details["single_sign_on"] = True
    record(Verb.SIGNED_IN, by=user, details=details)
    default_workspace(user)  # created at the first sign-in, even if an invitation leads to another workspace
    sociallogin = kwargs.get("sociallogin")
    if settings.SSO_GROUPS and not settings.SSO_GROUPS_CLAIM:
        apply_groups(user, of_directory(user))  # the settings may have changed since the last sign-in
    elif settings.SSO_GROUPS and sociallogin is not None and "groups" in sociallogin.account.extra_data:
        apply_groups(user, sociallogin.account.extra_data["groups"])


def _failed(
    sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **kwargs: Any
) -> None:
    """Record a failed sign-in in the audit log, with the account if the typed name belongs to one.

    The typed name is not stored, because it may be a password. The rate limits of sign-in limit the records of one
    account. Records of unknown names are limited to ``MOST_UNKNOWN`` a minute, so that attempts from many addresses
    cannot fill the log.
    """
    person = getattr(request, "user", None)
    if person is not None and person.is_authenticated:
        record_failed_reauthentication(person, method="password")
        return
    name = str(credentials.get("username") or credentials.get("email") or "")[:254].replace("\x00", "")
    tried = User.objects.filter(Q(username=name) | Q(email__iexact=name)).first() if name else None
    if tried is not None:
        record(Verb.SIGN_IN_FAILED, by=None, target=tried.public_id)
    elif (number := _unknown_this_minute()) <= MOST_UNKNOWN:
        last: dict[str, Word | list[Word]] = {"more": "not_noted"} if number == MOST_UNKNOWN else {}
        record(Verb.SIGN_IN_FAILED, by=None, details=last)


def _unknown_this_minute() -> int:
    """Count a failed sign-in with an unknown name. Return the number in this minute, over all processes.

    Concurrent calls can make it wrong by a few.
    """
    key = f"unknown-sign-ins:{timezone.now():%Y%m%d%H%M}"
    cache.add(key, 0, timeout=120)
    return cache.incr(key)


def _failed_code(sender: Any, user: User, reauthentication: bool = False, **kwargs: Any) -> None:
    if reauthentication:
        record_failed_reauthentication(user, method="code")
    else:
        record(Verb.SIGN_IN_FAILED, by=None, target=user.public_id, details={"step": "code"})


def _signed_out(sender: Any, request: HttpRequest, user: User | None, **kwargs: Any) -> None:
    SignIn.objects.filter(session_key=request.session.session_key or "").delete()
    if user is not None:
        record(Verb.SIGNED_OUT, by=user)


def _signed_up(sender: Any, user: User, **kwargs: Any) -> None:
    record(Verb.SIGNED_UP, by=user)


def _reauthenticated(
    sender: Any, user: User, method: str, reauthenticated: bool = False, **kwargs: Any
) -> None:
    if reauthenticated:
        record(Verb.REAUTHENTICATED, by=user, details={"method": method})


def _new_password(sender: Any, request: HttpRequest, user: User, signal: Any, **kwargs: Any) -> None:
    """Record a password change, and end the user's other sessions and program authorizations."""
    reset = signal is account.password_reset
    record(Verb.PASSWORD_RESET if reset else Verb.PASSWORD_CHANGED, by=user)
    program_authorizations.end_all_of(user, by=user, now=timezone.now())
    sessions.end_other_sessions(user, keep=None if reset else request.session.session_key, by=user)
    if not reset:
        sessions.record_use(request, user, now=timezone.now())


def _two_factor(sender: Any, user: User, authenticator: Authenticator, signal: Any, **kwargs: Any) -> None:
    if authenticator.type == Authenticator.Type.TOTP:
        record(Verb.TWO_FACTOR_ON if signal is mfa.authenticator_added else Verb.TWO_FACTOR_OFF, by=user)
    elif signal is not mfa.authenticator_removed:
        record(Verb.RECOVERY_CODES_MADE, by=user)


def _single_sign_on(sender: Any, request: HttpRequest, signal: Any, **kwargs: Any) -> None:
    """Record in the audit log that a provider's account was connected or disconnected. A receiver of allauth's signals.

    At the first sign-in to an account that the directory created, the request has no user yet. The user of
    ``sociallogin`` is recorded then.
    """
    added = signal is social.social_account_added
    person = request.user if request.user.is_authenticated else kwargs["sociallogin"].user
    record(Verb.SIGN_ON_CONNECTED if added else Verb.SIGN_ON_DISCONNECTED, by=cast(User, person))


def connect() -> None:
    """Connect the signal handlers. Called by ``AppConfig.ready``."""
    for signal, receiver in (
        (auth.user_logged_in, _opened),
        (auth.user_logged_out, _signed_out),
        (auth.user_login_failed, _failed),
        (account.user_logged_in, _signed_in),
        (account.user_signed_up, _signed_up),
        (account.authentication_step_completed, _reauthenticated),
        (account.password_changed, _new_password),
        (account.password_set, _new_password),
        (account.password_reset, _new_password),
        (mfa.authenticator_added, _two_factor),
        (mfa.authenticator_removed, _two_factor),
        (mfa.authenticator_reset, _two_factor),
        (mfa.authentication_failed, _failed_code),
        (social.social_account_added, _single_sign_on),
        (social.social_account_removed, _single_sign_on),
    ):
        signal.connect(receiver, dispatch_uid=f"workspaces.accounts.sign_in.{receiver.__name__}")


# Password sign-in: allowed for everybody, or, where only single sign-on is allowed, for single people in an emergency.

MINUTES = 15
_LET_IN = "let-in-by-password"


def shows_passwords() -> bool:
    """Return whether the sign-in page shows a password form."""
    return settings.PASSWORD_SIGN_IN or bool(_let_in())


def may_use_password(user: User) -> bool:
    return settings.PASSWORD_SIGN_IN or user.pk in _let_in()


def allow_password(user: User) -> None:
    """Allow this administrator to sign in with a password for ``MINUTES``, if single sign-on is unavailable."""
    record(Verb.PASSWORD_LET_IN, by=None, target=user.public_id, details={"minutes": MINUTES})
    cache.set(_LET_IN, [*_let_in(), user.pk], MINUTES * 60)


def _let_in() -> list[int]:
    return cache.get(_LET_IN, [])
