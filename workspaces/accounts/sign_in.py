"""Sign-in: the adapter for allauth, and audit records of sign-ins."""

import time
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from string import digits
from typing import Any, cast

from allauth.account import app_settings
from allauth.account import signals as account
from allauth.account.adapter import DefaultAccountAdapter, get_adapter
from allauth.account.authentication import get_authentication_records
from allauth.account.forms import SignupForm
from allauth.account.models import EmailAddress
from allauth.account.stages import EmailVerificationStage
from allauth.core.exceptions import ImmediateHttpResponse, ReauthenticationRequired
from allauth.mfa import signals as mfa
from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from allauth.socialaccount import signals as social
from allauth.socialaccount.forms import SignupForm as SocialSignupForm
from django import forms
from django.conf import settings
from django.contrib.auth import signals as auth
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AnonymousUser
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.crypto import get_random_string
from django.utils.translation import gettext as _

from memoryhub import mail
from memoryhub.errors import Conflict, Forbidden
from memoryhub.monitoring import request_origin
from memoryhub.monitoring.request_origin import comes_from_here, serves_only_here
from workspaces.access import default_workspace
from workspaces.accounts import oauth, sessions
from workspaces.accounts.single_sign_on import apply_groups, domains_for, of_directory
from workspaces.audit import Verb, Word, record
from workspaces.models import SignIn, User
from workspaces.models.users import ALIKE, check_username, lock_usernames

View = Callable[..., HttpResponse]
BY_CODE = "mfa_reauthenticate"
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
            "allauth.account.stages.EmailVerificationStage": "workspaces.accounts.sign_in.FirstAddressStage"
        }
        return [ours.get(stage, stage) for stage in super().get_login_stages()]

    def get_reauthentication_methods(self, user: User | AnonymousUser) -> list[dict[str, Any]]:
        """Return the ways to re-authenticate: only the code if two-factor sign-in is set up, because the password may
        be stolen.
        """
        methods: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        return [method for method in methods if method["id"] == BY_CODE] or methods


def record_failed_reauthentication(user: User, *, method: str) -> None:
    """Record a failed re-authentication of a signed-in user in the audit log."""
    record(Verb.REAUTHENTICATION_FAILED, by=user, details={"method": method})


def has_two_factor(request: HttpRequest) -> bool:
    return is_mfa_enabled(request.user)


def typed_password_lately(request: HttpRequest) -> bool:
    """Return whether the user has signed in or re-authenticated within ACCOUNT_REAUTHENTICATION_TIMEOUT.

    For users with two-factor sign-in, only a code counts. For users with a password, single sign-on does not count,
    because the provider may not have asked for a password.
    """
    ways = {method["id"] for method in get_adapter(request).get_reauthentication_methods(request.user)}
    counted = {"mfa"} if BY_CODE in ways else {"password", "mfa"}
    records = get_authentication_records(request, request.user)
    times = [record["at"] for record in records if not ways or record["method"] in counted]
    return bool(times) and time.time() - times[-1] < app_settings.REAUTHENTICATION_TIMEOUT


def ask_for_password(request: HttpRequest) -> None:
    """Require that the user has signed in or re-authenticated recently. For pages that remove something permanently.

    Else raises ReauthenticationRequired, which allauth turns into a redirect. Users who can only sign in by single
    sign-on have no way to re-authenticate: for them it raises ImmediateHttpResponse, with a page on which they sign in
    again.
    """
    if typed_password_lately(request):
        return
    if get_adapter(request).get_reauthentication_methods(request.user):
        raise ReauthenticationRequired
    raise ImmediateHttpResponse(render(request, "socialaccount/again.html", status=403))


def recent_sign_in_required(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Require sign-in and recent re-authentication. For allauth's pages that change how a user signs in."""

    @wraps(view)
    def asking(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        ask_for_password(request)
        return view(request, *args, **kwargs)

    return login_required(asking)


def confirmed(*, allow_get: bool = False) -> Callable[[View], View]:
    """Return a decorator that requires a recent sign-in or re-authentication before a view is called.

    With ``allow_get``, GET requests need neither. Users who can only sign in by single sign-on have no way to
    re-authenticate, so they need neither, too.
    """

    def decorated(view: View) -> View:
        @wraps(view)
        def asking(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            asks = not (allow_get and request.method == "GET") and not typed_password_lately(request)
            if asks and get_adapter(request).get_reauthentication_methods(request.user):
                raise ReauthenticationRequired
            return view(request, *args, **kwargs)

        return asking

    return decorated


def require_fresh_password(request: HttpRequest) -> None:
    """Raise Forbidden with the code ``reauthenticate`` unless the user re-authenticated recently.

    For the REST API, which cannot redirect.
    """
    if typed_password_lately(request):
        return
    text = _("This needs a fresh sign-in. Sign out and in again, then send this again.")
    if get_adapter(request).get_reauthentication_methods(request.user):
        text = _(
            "This needs your password once more. Enter it at /accounts/reauthenticate/, then send this again."
        )
    raise Forbidden(text, code="reauthenticate")


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
    oauth.end_all_of(user, by=user, now=timezone.now())
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


def _of_domains() -> str:
    return _("Must be an address of %(domains)s.") % {"domains": ", ".join(settings.SIGNUP_DOMAINS)}


class DomainSignupForm(SignupForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].label = _("Email")  # allauth's label repeats that the field is optional
        if settings.SIGNUP_DOMAINS:
            self.fields["email"].help_text = _of_domains()

    def clean(self) -> dict[str, Any]:
        """Report that the two passwords differ, even if the first one is invalid, in which case allauth does not."""
        cleaned: dict[str, Any] = super().clean()
        first, second = (self.data.get(self.add_prefix(name)) for name in ("password1", "password2"))
        if first and second and first != second and not self.has_error("password2"):
            self.add_error("password2", _("You must type the same password each time."))
        return cleaned

    def clean_email(self) -> str:
        email: str = super().clean_email()
        domains = settings.SIGNUP_DOMAINS
        if domains and email.rpartition("@")[2].casefold() not in domains:
            self["email"].help_text = ""  # else it is shown twice
            raise forms.ValidationError(_of_domains())
        return email

    def save(self, request: HttpRequest) -> User:
        with transaction.atomic():
            is_first = is_first_account(request)
            user: User = super().save(request)
            if is_first:
                make_administrator(user, request)
        return user


class ProviderSignupForm(SocialSignupForm):
    """Form that completes a first single sign-on if the user name or email address is already taken."""

    def clean_email(self) -> str:
        email: str = super().clean_email()
        proven = {each.email.casefold() for each in self.sociallogin.email_addresses if each.verified}
        if email and domains_for(self.sociallogin) and email.casefold() not in proven:
            raise forms.ValidationError(_("Must be an address that is verified where you signed in."))
        return email


class FirstAddressStage(EmailVerificationStage):
    """Sign-in stage that requires a verified email address, only at the first sign-in after signing up with a password.

    It lets everyone else pass: users of single sign-on, users who have signed in before, and users whose account has no
    email address to verify.
    """

    def handle(self) -> Any:
        user = self.login.user
        came_otherwise = user is not None and (
            user.last_login is not None or not EmailAddress.objects.filter(user=user).exists()
        )
        if came_otherwise or "sociallogin" in (self.login.signal_kwargs or {}):
            return None, True
        return super().handle()


# The first account of an installation that only its own machine can reach becomes an administrator, because its person
# runs the installation (docs/decisions/0027).

TOLD = "is_first_account"  # key in the session, for the page that shows a notice
RIGHTS = ("is_staff", "is_superuser")


def is_first_account(request: HttpRequest) -> bool:
    """Return whether this sign-up may create the first account of the installation.

    It may if there is no account yet, the server is reachable only from this machine, and the request comes from it.
    Call it in the transaction that creates the user: it takes a lock, so that only one of two concurrent sign-ups is
    the first.
    """
    if not (serves_only_here() and comes_from_here(request)):
        return False
    lock_usernames()
    return not User.objects.exists()


def make_administrator(user: User, request: HttpRequest) -> None:
    user.is_staff = user.is_superuser = True
    user.save(update_fields=RIGHTS)
    record(Verb.RIGHTS_CHANGED, by=None, target=user.public_id, details={"fields": [*RIGHTS], "why": "first"})
    request.session[TOLD] = True
