"""Sign-up: its forms, and the first account of an installation, which becomes an administrator."""

from typing import Any

from allauth.account.forms import SignupForm
from allauth.account.models import EmailAddress
from allauth.account.stages import EmailVerificationStage
from allauth.socialaccount.forms import SignupForm as SocialSignupForm
from django import forms
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _

from memoryhub.monitoring.request_origin import comes_from_here, serves_only_here
from workspaces.accounts.single_sign_on import domains_for
from workspaces.audit import Verb, record
from workspaces.models import User
from workspaces.models.users import lock_usernames


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
