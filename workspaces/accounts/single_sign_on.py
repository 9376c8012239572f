"""Single sign-on through allauth: OpenID Connect with the configured provider, and OAuth with public providers.

This module decides who may sign in, and which data of the provider are stored. Groups of the provider or the directory
grant memberships and staff rights. They are updated at each single sign-on and at each change by the directory. A role
that a user has changed by hand since is not changed.
"""

import logging
from collections.abc import Collection, Mapping
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
from django.db import transaction
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST
from requests import RequestException

from memoryhub.errors import Conflict, Invalid
from workspaces.accounts.account_changes import require_own
from workspaces.actions.workspaces import after_lost_right, lock, record_member, refuse_to_lose
from workspaces.audit import Verb, record
from workspaces.models import DirectoryGroup, GroupGrant, Membership, Role, User, Workspace

MOST_GROUPS = 2000  # read from one claim; further groups are ignored
STAFF = "staff"


def groups_in(claims: Mapping[str, Any]) -> list[str] | None:
    """Return the groups in the provider's claims that the setting SSO_GROUPS maps to rights.

    Returns None if the provider left the groups out, as some do for long lists. Rights must not change then.
    """
    name = settings.SSO_GROUPS_CLAIM
    for source in (claims.get("userinfo"), claims.get("id_token"), claims):
        if isinstance(source, Mapping) and name in source:
            value = source[name]
            groups = value[:MOST_GROUPS] if isinstance(value, list) else [value]
            return sorted({each for each in groups if isinstance(each, str)} & settings.SSO_GROUPS.keys())
        if isinstance(source, Mapping) and name in (source.get("_claim_names") or ()):
            logger.warning(
                "Single sign-on left out somebody's groups, since they are many: nothing was changed."
            )
            return None
    return []


def of_directory(person: User) -> list[str]:
    """Return the person's groups in the directory that the setting SSO_GROUPS maps to rights."""
    groups = DirectoryGroup.objects.filter(members=person, name__in=settings.SSO_GROUPS)
    return list(groups.values_list("name", flat=True))


def apply_groups(person: User, groups: Collection[str]) -> None:
    """Grant the rights that the setting SSO_GROUPS maps to these groups, and revoke those granted only by previous
    groups.

    Rights that were granted by hand stay. Atomic and idempotent.
    """
    rights = [place for group in groups for place in settings.SSO_GROUPS.get(group, ())]
    roles: dict[str, Role] = {}
    for workspace_id, _, role in (place.partition(":") for place in rights if place != STAFF):
        roles[workspace_id] = max(Role(role), roles.get(workspace_id, Role(role)), key=lambda each: each.rank)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=person.pk)
        grants = {grant.workspace_id: grant for grant in GroupGrant.objects.filter(user=person)}
        _staff(person, STAFF in rights, grants.pop(None, None))
        places = Workspace.objects.filter(Q(public_id__in=roles) | Q(pk__in=grants)).order_by("pk")
        for workspace in places:
            _place(workspace, person, roles.get(workspace.public_id), grants.get(workspace.pk))


def _staff(person: User, wanted: bool, grant: GroupGrant | None) -> None:
    if wanted == (grant is not None) or (wanted and person.is_staff):
        return
    if grant is None:
        GroupGrant.objects.create(user=person, workspace=None)
    else:
        grant.delete()
    if not person.is_superuser and person.is_staff != wanted:
        person.is_staff = wanted
        person.save(update_fields=["is_staff"])
        record(Verb.RIGHTS_CHANGED, by=None, target=person.public_id, details={"fields": ["is_staff"]})


def _place(workspace: Workspace, person: User, role: Role | None, grant: GroupGrant | None) -> None:
    lock(workspace)
    member = Membership.objects.filter(workspace=workspace, user=person).first()
    if grant is None:
        if role is not None and member is None:
            Membership.objects.create(workspace=workspace, user=person, role=role)
            GroupGrant.objects.create(user=person, workspace=workspace, role=role)
            record_member(Verb.MEMBER_ADDED, workspace, person, None, role=role, given_by="group")
    elif member is None or member.role != grant.role:  # a person changed the role by hand since
        if role is None:
            grant.delete()
    elif role != member.role:
        _change(workspace, member, role, grant)


def _change(workspace: Workspace, member: Membership, role: Role | None, grant: GroupGrant) -> None:
    had = Role(member.role)
    try:
        if role != Role.OWNER:
            refuse_to_lose(workspace, member)
    except Conflict:
        logger.warning(
            "Somebody left a group, and stays the only owner of a workspace that it made them one of."
        )
        return
    if role is None:
        member.delete()
        grant.delete()
        record_member(Verb.MEMBER_REMOVED, workspace, member.user, None, role=had, given_by="group")
    else:
        member.role = grant.role = role
        member.save(update_fields=["role"])
        grant.save(update_fields=["role"])
        record_member(
            Verb.ROLE_CHANGED, workspace, member.user, None, role=role, before=had, given_by="group"
        )
    if role is None or not role.allows(had):
        after_lost_right(workspace, member.user, None, had=had)


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
        """Return the account that the directory created for this person, at their first sign-in, else None.

        The account's email address must equal the provider's, and both must be verified.
        """
        if not settings.SCIM_TOKEN or sociallogin.account.provider != PROVIDER:
            return None
        for address in sociallogin.email_addresses:
            addresses = EmailAddress.objects.filter(
                email__iexact=address.email, verified=True, user__is_active=True
            )
            users = (
                [each.user for each in addresses.select_related("user")] if address.verified is True else []
            )
            if len(users) == 1 and _was_never_opened(users[0]):
                return users[0], address.email
        return None

    def list_apps(self, request: HttpRequest, provider: Any = None, client_id: Any = None) -> list[SocialApp]:
        """Return the apps in the settings. allauth would also query the database, which contains none."""
        apps = [SocialApp(provider=name, **told) for name, told in settings.OAUTH.items()]
        if settings.OIDC is not None:
            apps.append(SocialApp(provider="openid_connect", provider_id=PROVIDER, **settings.OIDC))
        return [app for app in apps if provider in (None, app.provider, app.provider_id)]

    def populate_user(self, request: HttpRequest, sociallogin: SocialLogin, data: dict[str, Any]) -> Any:
        """Set the user's fields from the provider's data: name, email address and groups, limited in length.

        Raises ValueError if the id contains a NUL character.
        """
        if "\x00" in sociallogin.account.uid:
            raise ValueError("an id with a NUL")
        told = {name: str(value).replace("\x00", "")[:150] for name, value in data.items() if value}
        claims = {"preferred_username": told.get("username"), "email": told.get("email")}
        says_groups = settings.SSO_GROUPS_CLAIM and sociallogin.account.provider == PROVIDER
        groups = groups_in(sociallogin.account.extra_data) if says_groups else None
        # GitLab sends an address only if its person confirmed it.
        is_gitlab = sociallogin.account.provider == "gitlab"
        is_confirmed = bool(sociallogin.account.extra_data.get("confirmed_at"))
        sociallogin.account.extra_data = {name: value for name, value in claims.items() if value}
        if groups is not None:
            sociallogin.account.extra_data["groups"] = groups
        for address in sociallogin.email_addresses:
            address.verified = is_confirmed if is_gitlab else address.verified is True
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
        """Refuse people without a verified email address in the permitted domains, at every single sign-on.

        Raises ImmediateHttpResponse with a page (403). A sign-in with a password is not affected.
        """
        domains = domains_for(sociallogin)
        if domains and not any(
            address.verified is True and address.email.rpartition("@")[2].casefold() in domains
            for address in sociallogin.email_addresses
        ):
            page = render(request, "socialaccount/not_let_in.html", {"domains": domains}, status=403)
            raise ImmediateHttpResponse(page)

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        """Return whether this person may create an account.

        People from the configured provider may. People from public providers may if the setting OAUTH_SIGNUP is on.
        """
        return bool(_is_of_the_company(sociallogin) or settings.OAUTH_SIGNUP)


def domains_for(sociallogin: SocialLogin) -> list[str]:
    """Return the permitted domains for this sign-in, or [] if all are permitted.

    The person needs a verified email address in one of them.
    """
    domains: list[str] = settings.OIDC_DOMAINS if _is_of_the_company(sociallogin) else settings.OAUTH_DOMAINS
    return domains


def _is_of_the_company(sociallogin: SocialLogin) -> bool:
    return bool(sociallogin.account.provider == PROVIDER)


def _was_never_opened(user: User) -> bool:
    return not user.has_usable_password() and not SocialAccount.objects.filter(user=user).exists()


@require_POST
@login_not_required
def begin(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Send the browser to the provider.

    The response is a page that redirects by itself, because the content security policy forbids forms that lead to
    another site.
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
    """Handle the redirect back from the provider. Return allauth's response, or an error page if the data is malformed.

    Several types of error are caught, because the provider's data may have any form or length.
    """
    try:
        return _step(OAuth2CallbackView, request, provider_id)
    except (ImproperlyConfigured, ValidationError, AttributeError, KeyError, TypeError, ValueError):
        logger.warning("The provider of single sign-on said something of a person that cannot be kept.")
        return _odd(request)


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
