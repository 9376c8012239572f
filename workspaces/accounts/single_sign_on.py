"""Single sign-on through allauth: OpenID Connect with the configured provider, and OAuth with public providers.

This module decides who may sign in and which of the provider's data are stored.
"""

from __future__ import annotations

import logging
from typing import Any

from allauth.account.models import EmailAddress
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin
from allauth.socialaccount.providers.base import AuthError
from allauth.socialaccount.providers.github.views import GitHubOAuth2Adapter
from allauth.socialaccount.providers.gitlab.views import GitLabOAuth2Adapter
from allauth.socialaccount.providers.google.views import GoogleOAuth2Adapter
from allauth.socialaccount.providers.oauth2.views import (
    OAuth2Adapter,
    OAuth2CallbackView,
    OAuth2LoginView,
    OAuth2View,
)
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST
from requests import RequestException

from memoryhub.errors import Invalid
from workspaces.accounts.changes import require_own
from workspaces.accounts.groups import groups_in
from workspaces.models import User

logger = logging.getLogger(__name__)
PROVIDER = "sso"  # the configured provider's id in URLs
# allauth's adapters for the providers at which anybody can have an account, by their id in URLs.
OPEN_TO_ALL: dict[str, type[OAuth2Adapter]] = {
    "github": GitHubOAuth2Adapter,
    "gitlab": GitLabOAuth2Adapter,
    "google": GoogleOAuth2Adapter,
}


class SingleSignOn(DefaultSocialAccountAdapter):
    def authenticate_by_email(self, sociallogin: SocialLogin) -> tuple[User, str] | None:
        """Return the account made by the directory (``accounts.provisioning``) for this person, on their first sign-in.

        Its address must equal the provider's, and both must be verified.
        """
        if not settings.SCIM_TOKEN or sociallogin.account.provider != PROVIDER:
            return None
        for address in sociallogin.email_addresses:
            made = EmailAddress.objects.filter(
                email__iexact=address.email, verified=True, user__is_active=True
            )
            found = [each.user for each in made.select_related("user")] if address.verified is True else []
            if len(found) == 1 and _was_never_opened(found[0]):
                return found[0], address.email
        return None

    def list_apps(self, request: HttpRequest, provider: Any = None, client_id: Any = None) -> list[SocialApp]:
        """Return the apps from the settings. allauth would also query the database, which has none."""
        apps = [SocialApp(provider=name, **told) for name, told in settings.OAUTH.items()]
        if settings.OIDC is not None:
            apps.append(SocialApp(provider="openid_connect", provider_id=PROVIDER, **settings.OIDC))
        return [app for app in apps if provider in (None, app.provider, app.provider_id)]

    def populate_user(self, request: HttpRequest, sociallogin: SocialLogin, data: dict[str, Any]) -> Any:
        """Fill in the user from the provider's data. Only the name, address and groups are stored, with limited
        lengths.

        Raises ValueError for an id with a NUL character.
        """
        if "\x00" in sociallogin.account.uid:
            raise ValueError("an id with a NUL")
        told = {name: str(value).replace("\x00", "")[:150] for name, value in data.items() if value}
        kept = {"preferred_username": told.get("username"), "email": told.get("email")}
        says_groups = settings.SSO_GROUPS_CLAIM and sociallogin.account.provider == PROVIDER
        groups = groups_in(sociallogin.account.extra_data) if says_groups else None
        if sociallogin.account.provider == "gitlab":  # sends an address only if its person confirmed it
            for address in sociallogin.email_addresses:
                address.verified = bool(sociallogin.account.extra_data.get("confirmed_at"))
        sociallogin.account.extra_data = {name: value for name, value in kept.items() if value}
        if groups is not None:
            sociallogin.account.extra_data["groups"] = groups
        for address in sociallogin.email_addresses:
            address.verified = address.verified is True
        sociallogin.email_addresses = [
            each for each in sociallogin.email_addresses if "\x00" not in each.email
        ]
        user: User = super().populate_user(request, sociallogin, told)
        try:
            require_own(user.get_full_name(), user)
        except Invalid:  # the person may have chosen the name at the provider
            user.first_name = user.last_name = ""
        return user

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Refuse people outside the permitted domains, at every sign-in. A password, if they have one, still works."""
        domains = domains_for(sociallogin)
        if domains and not _is_of_a_domain(sociallogin, domains):
            page = render(request, "socialaccount/not_let_in.html", {"domains": domains}, status=403)
            raise ImmediateHttpResponse(page)

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        """Return whether this person may create an account.

        People from the configured provider always may; people from public providers only with the setting OAUTH_SIGNUP.
        """
        return bool(_is_of_the_company(sociallogin) or settings.OAUTH_SIGNUP)


def domains_for(sociallogin: SocialLogin) -> list[str]:
    """Return the domains in which a verified address is required, or an empty list if any domain is allowed."""
    domains: list[str] = settings.OIDC_DOMAINS if _is_of_the_company(sociallogin) else settings.OAUTH_DOMAINS
    return domains


def _is_of_the_company(sociallogin: SocialLogin) -> bool:
    return bool(sociallogin.account.provider == PROVIDER)


def _was_never_opened(user: User) -> bool:
    return not user.has_usable_password() and not SocialAccount.objects.filter(user=user).exists()


def _is_of_a_domain(sociallogin: SocialLogin, domains: list[str]) -> bool:
    """Return whether an address that the provider has verified is in one of the domains."""
    return any(
        address.verified is True and address.email.rpartition("@")[2].casefold() in domains
        for address in sociallogin.email_addresses
    )


@require_POST
@login_not_required
def begin(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Send the browser to the provider, by a page that redirects itself: the content security policy allows no form
    to lead to another site.
    """
    try:
        answer = _step(OAuth2LoginView, request, provider_id)
    except (RequestException, KeyError, ValueError):  # unreachable, or not a provider
        return _odd(request)
    if answer.status_code != 302:
        return answer
    return render(request, "socialaccount/redirect.html", {"address": answer["Location"]})


@login_not_required
def come_back(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Handle the provider's redirect back.

    Errors are caught because its data about a person may have any form or length.
    """
    try:
        answer = _step(OAuth2CallbackView, request, provider_id)
    except (ImproperlyConfigured, ValidationError, AttributeError, KeyError, TypeError, ValueError):
        logger.warning("The provider of single sign-on said something of a person that cannot be kept.")
        return _odd(request)
    return answer


def _step(step: type[OAuth2View], request: HttpRequest, provider_id: str) -> HttpResponse:
    kind = OPEN_TO_ALL.get(provider_id)
    adapter = kind(request) if kind else OpenIDConnectOAuth2Adapter(request, provider_id)
    try:
        answer: HttpResponse = step.adapter_view(adapter)(request)
    except SocialApp.DoesNotExist:
        raise Http404 from None
    return answer


def _odd(request: HttpRequest) -> HttpResponse:
    return render(request, "socialaccount/authentication_error.html", {"code": AuthError.UNKNOWN}, status=502)
