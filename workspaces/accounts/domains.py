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

from workspaces.accounts import first_account
from workspaces.accounts.single_sign_on import domains_for
from workspaces.models import User


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
            is_first = first_account.is_next(request)
            user: User = super().save(request)
            if is_first:
                first_account.make_administrator(user, request)
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
