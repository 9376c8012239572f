"""The sign-up form, and its limit to domains (``MEMORYHUB_SIGNUP_DOMAINS``): an address of one is required, and has
to be theirs.
"""

from __future__ import annotations

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

from memoryhub.http.only_here import comes_from_here, serves_only_here
from workspaces.accounts.single_sign_on import domains_for
from workspaces.audit import Verb, record
from workspaces.models import User
from workspaces.models.usernames import hold_usernames


def _of_domains() -> str:
    return _("Must be an address of %(domains)s.") % {"domains": ", ".join(settings.SIGNUP_DOMAINS)}


class DomainSignupForm(SignupForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].label = _(
            "Email"
        )  # allauth's says beside it that it is optional, as our forms do
        if settings.SIGNUP_DOMAINS:
            self.fields["email"].help_text = _of_domains()

    def clean_email(self) -> str:
        email: str = super().clean_email()
        domains = settings.SIGNUP_DOMAINS
        if domains and email.rpartition("@")[2].casefold() not in domains:
            self["email"].help_text = ""  # else it stands there twice
            raise forms.ValidationError(_of_domains())
        return email

    def save(self, request: HttpRequest) -> User:
        with transaction.atomic():
            is_first = is_next(request)
            user: User = super().save(request)
            if is_first:
                make_administrator(user, request)
        return user


class ProviderSignupForm(SocialSignupForm):
    """Form for a name or address from single sign-on that is taken."""

    def clean_email(self) -> str:
        email: str = super().clean_email()
        proven = {each.email.casefold() for each in self.sociallogin.email_addresses if each.verified}
        if email and domains_for(self.sociallogin) and email.casefold() not in proven:
            raise forms.ValidationError(_("Must be an address that is verified where you signed in."))
        return email


class FirstAddressStage(EmailVerificationStage):
    """allauth's, for who signed up and has never been in: everybody else came another way, or before the rule."""

    def handle(self) -> Any:
        user = self.login.user
        came_otherwise = user is not None and (
            user.last_login is not None or not EmailAddress.objects.filter(user=user).exists()
        )
        if came_otherwise or "sociallogin" in (self.login.signal_kwargs or {}):
            return None, True
        return super().handle()


# The first account, on the machine that alone can reach this MemoryHub, is its administrator's.
#
# They run it: else the first thing to learn would be two environment variables (docs/decisions/0027).

TOLD = "is_first_account"  # in the session, for the page that says so
RIGHTS = ("is_staff", "is_superuser")


def is_next(request: HttpRequest) -> bool:
    """Whether who signs up by this request would be the first. Within the transaction that makes them: until it is
    over nobody else is made, so that of two at once one is.
    """
    if not (serves_only_here() and comes_from_here(request)):
        return False
    hold_usernames()
    return not User.objects.exists()


def make_administrator(user: User, request: HttpRequest) -> None:
    user.is_staff = user.is_superuser = True
    user.save(update_fields=RIGHTS)
    record(Verb.RIGHTS_CHANGED, by=None, target=user.public_id, details={"fields": [*RIGHTS], "why": "first"})
    request.session[TOLD] = True
