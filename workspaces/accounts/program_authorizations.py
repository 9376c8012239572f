"""OAuth authorizations of programs, from consent to revocation.

An authorization is stored as an API key whose secret is given to no program. The program sends access tokens instead.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import SplitResult, urlsplit

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from memoryhub.database.queries import PreparedQuery
from memoryhub.errors import DomainError, Invalid
from workspaces.access import get_workspace
from workspaces.accounts import keys
from workspaces.accounts.keys import NAME_LENGTH, KeyRefused, end_keys, hashed, new_text, require_valid
from workspaces.models import ApiKey, KeyScope, OAuthClient, OAuthCode, OAuthToken, TokenKind, User, Workspace

PREFIXES = {TokenKind.ACCESS: "mha_", TokenKind.REFRESH: "mhr_"}
CODE_LIVES = timedelta(minutes=2)
ACCESS_LIVES = timedelta(minutes=30)
UNUSED_LIVES = timedelta(days=30)  # without a refresh; then the program needs a new authorization
EVERYWHERE = "/"
RESOURCES = ("/mcp", "/v1", "/api/v1", EVERYWHERE)  # a token is valid for the endpoints below one of them
SCOPES = {KeyScope.READ: "read", KeyScope.WRITE: "read write"}


def _tokens(kind: str, token_hash: str) -> QuerySet[OAuthToken]:
    tokens = OAuthToken.objects.select_related("key__user", "key__workspace", "key__client")
    return tokens.filter(kind=kind, token_hash=token_hash)


_TOKEN = PreparedQuery(_tokens, kind=str, token_hash=str)


def scope_of(scopes: list[str]) -> str:
    """Return the scope "write" if it is among those requested, else "read". Other scopes, such as ``openid``, are
    ignored.
    """
    return KeyScope.WRITE if "write" in scopes else KeyScope.READ


def resource_of(base: str, resource: str | None) -> str | None:
    """Return the path, one of ``RESOURCES``, that a resource indicator (RFC 8707) names, or None if it names another
    URL.

    Without an indicator it is ``/mcp``. ``base``: URL of this installation.
    """
    if resource is None:
        return "/mcp"
    path = resource.removeprefix(base).rstrip("/") or EVERYWHERE
    return path if resource.startswith(base) and path in RESOURCES else None


class GrantRefused(Exception):
    """Raised for an invalid authorization code or refresh token. The message says why."""


@dataclass(frozen=True)
class Tokens:
    access: str
    refresh: str
    scope: str


@dataclass(frozen=True)
class CheckedRequest:
    """A program's authorization request that has passed all checks."""

    client: OAuthClient
    redirect_uri: str
    names_redirect: bool
    challenge: str
    resource: str


def store_consent(
    agreed: CheckedRequest, workspace: Workspace, *, scope: str, by: User, now: datetime
) -> str:
    """Store the user's consent to an authorization request. Return the authorization code.

    Raises NotFound if the user is not a member, Invalid if the scope is unknown or allows more than the user's role.
    """
    keys.check_scope(scope, get_workspace(by, workspace.public_id))
    text = new_text("mhc_")
    OAuthCode.objects.create(
        client=agreed.client,
        user=by,
        workspace=workspace,
        scope=scope,
        code_hash=hashed(text),
        challenge=agreed.challenge,
        redirect_uri=agreed.redirect_uri,
        names_redirect=agreed.names_redirect,
        resource=agreed.resource,
        expires_at=now + CODE_LIVES,
    )
    return text


def find_code(client_id: str, text: str) -> OAuthCode | None:
    codes = OAuthCode.objects.filter(client__public_id=client_id)
    return codes.filter(code_hash=hashed(text)).first()


def find_refresh(client_id: str, text: str, *, now: datetime) -> OAuthToken | None:
    """Return the refresh token with this text, or None if there is none.

    A token that was used before is returned too, but is treated as stolen: its authorization is revoked.
    """
    token = find_token(TokenKind.REFRESH, text, client_id=client_id)
    if token is not None and token.used_at is not None:
        end(token.key_id, now=now)
    return token


def exchange_code(code: OAuthCode, *, now: datetime) -> Tokens:
    """Exchange an authorization code for its first tokens.

    A code that was used before is treated as stolen: its authorization is revoked, and GrantRefused is raised.
    """
    with transaction.atomic():
        locked = OAuthCode.objects.select_for_update(of=("self",)).select_related(
            "client", "user", "workspace"
        )
        code = locked.get(pk=code.pk)
        if code.key_id is None:
            return _first_tokens(code, now=now)
    end(code.key_id, now=now)
    raise GrantRefused(_("This code was used before, so what it opened was revoked. Sign in again."))


def find_token(kind: TokenKind, text: str, *, client_id: str | None = None) -> OAuthToken | None:
    token = _TOKEN.first(kind=kind.value, token_hash=hashed(text))
    client = token.key.client if token is not None else None
    mine = client_id is None or (client is not None and client.public_id == client_id)
    return token if mine else None


def exchange_refresh_token(token: OAuthToken, *, scope: str, now: datetime) -> Tokens:
    """Exchange a refresh token for new tokens.

    A token that was used before is treated as stolen: its authorization is revoked, and GrantRefused is raised.
    """
    with transaction.atomic():
        locked = OAuthToken.objects.select_for_update(of=("self",)).select_related(
            "key__user", "key__workspace"
        )
        token = locked.get(pk=token.pk)
        if token.used_at is None:
            key = _still(token.key, now=now)
            token.used_at = now
            token.save(update_fields=["used_at"])
            return _issue(key, token.resource, scope=scope, now=now)
    end(token.key_id, now=now)
    raise GrantRefused(_("This refresh token was used before, so access was revoked. Sign in again."))


def verify_access(text: str, *, path: str, now: datetime) -> ApiKey:
    """Return the API key of this access token, limited to the token's scope.

    Raises KeyRefused if the token is unknown, expired, or not valid for this path.
    """
    token = find_token(TokenKind.ACCESS, text)
    if token is None:
        raise KeyRefused(_("There is no such access token."))
    key = require_valid(token.key, now=now)
    if token.expires_at <= now:
        raise KeyRefused(_("This access token has expired."))
    if not is_below(path, token.resource):
        raise KeyRefused(_("This access token is for other addresses."))
    if token.scope == KeyScope.READ:
        key.scope = KeyScope.READ
    return key


def is_below(path: str, resource: str) -> bool:
    return resource == EVERYWHERE or path == resource or path.startswith(f"{resource}/")


def end(key_pk: int, *, now: datetime) -> None:
    """Revoke the authorization that is stored as this API key. Idempotent."""
    for key in ApiKey.objects.select_related("user").filter(pk=key_pk):
        end_keys([key.pk], by=key.user, now=now)


def end_all_of(user: User, *, by: User, now: datetime) -> int:
    """Revoke all authorizations of this person, and their unused authorization codes. Return the number of programs."""
    with transaction.atomic():
        OAuthCode.objects.filter(user=user, key=None).delete()
        User.objects.select_for_update(no_key=True).get(pk=user.pk)  # waits for a code exchange in progress
        theirs = ApiKey.objects.filter(user=user, revoked_at=None).exclude(client=None)
        return end_keys(list(theirs.values_list("pk", flat=True)), by=by, now=now)


def sweep_tokens(*, now: datetime) -> int:
    """Delete expired codes and tokens. Return the number deleted."""
    codes, _ = OAuthCode.objects.filter(expires_at__lt=now - ACCESS_LIVES).delete()
    tokens, _ = OAuthToken.objects.filter(expires_at__lt=now).delete()
    return codes + tokens


def _first_tokens(code: OAuthCode, *, now: datetime) -> Tokens:
    """Create a new authorization, stored as an API key, and its first tokens in exchange for an authorization code.

    Revokes the key that the program had for this user in this workspace. Raises GrantRefused if the account is closed,
    or if the user may no longer create such a key.
    """
    if not code.user.is_active:
        raise GrantRefused(_("This account is closed."))
    # Of two concurrent exchanges only one keeps its key.
    User.objects.select_for_update(no_key=True).get(pk=code.user_id)
    before = ApiKey.objects.filter(
        client=code.client, user=code.user, workspace=code.workspace, revoked_at=None
    )
    end_keys(list(before.values_list("pk", flat=True)), by=code.user, now=now)
    try:
        key, _text = keys.make_key(
            code.workspace,
            by=code.user,
            name=_free_name(code.client.name, code.user),
            scope=code.scope,
            expires_at=now + UNUSED_LIVES,
            now=now,
            client=code.client,
        )
    except DomainError as error:  # no longer a member, or with a lesser role
        raise GrantRefused(error.message) from None
    code.key = key
    code.save(update_fields=["key"])
    return _issue(key, code.resource, scope=code.scope, now=now)


def _still(key: ApiKey, *, now: datetime) -> ApiKey:
    try:
        require_valid(key, now=now)
        get_workspace(key.user, key.workspace.public_id)
    except (KeyRefused, DomainError) as error:
        raise GrantRefused(str(error)) from None
    return key


def _issue(key: ApiKey, resource: str, *, scope: str, now: datetime) -> Tokens:
    """Create an access token with this ``scope`` and a refresh token with the key's scope."""
    ApiKey.objects.filter(pk=key.pk).update(expires_at=now + UNUSED_LIVES)
    tokens: dict[TokenKind, str] = {}
    for kind, of, lives in (
        (TokenKind.ACCESS, scope, ACCESS_LIVES),
        (TokenKind.REFRESH, key.scope, UNUSED_LIVES),
    ):
        tokens[kind] = new_text(PREFIXES[kind])
        OAuthToken.objects.create(
            key=key,
            kind=kind,
            token_hash=hashed(tokens[kind]),
            scope=of,
            resource=resource,
            expires_at=now + lives,
        )
    return Tokens(tokens[TokenKind.ACCESS], tokens[TokenKind.REFRESH], scope)


def _free_name(name: str, user: User) -> str:
    """Return the program's name, with a number appended if another active key of the person has this name."""
    used_names = set(ApiKey.objects.filter(user=user, revoked_at=None).values_list("name", flat=True))
    names = (name, *(f"{name} {number}" for number in range(2, len(used_names) + 3)))
    return next(each for each in names if each not in used_names)[:NAME_LENGTH]


# Dynamic client registration. Any program may register, so only safe redirect URIs are accepted.

MOST_ADDRESSES, ADDRESS_LENGTH = 10, 500
MOST_UNUSED = 1_000  # clients; above this number the oldest are deleted
UNUSED_FOR = timedelta(days=1)
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
# Besides https, and http on a loopback address, a client may use its own scheme (cursor:). These schemes are refused:
# they belong to browsers or systems, can be claimed by a web site (web+), or forward to another address.
NOT_THEIRS = re.compile(
    r"about|blob|chrome|content|data|feed|file|filesystem|ftp|gopher|googlechromes?|http|intent|jar|javascript|mailto|"
    r"microsoft-edge|ms-.*|resource|search-ms|sftp|sms|ssh|tel|vbscript|view-source|web\+.*|wss?|x-safari-.*"
)
HANDED_ON = re.compile(r"(?i)(?:https?|javascript|data)(?::|%3a)|\|")
HOST = re.compile(r"[a-z0-9.-]+|[0-9a-f:.]+")
QUOTES = str.maketrans(dict.fromkeys('“”„«»"', "'"))
# Characters that are displayed as nothing or as a blank.
UNSEEN = dict.fromkeys(map(ord, "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"))


def register(name: str, redirect_uris: Sequence[str], *, now: datetime) -> OAuthClient:
    """Register a client program. Raises Invalid for too many redirect URIs, or an unsafe one."""
    if not 1 <= len(redirect_uris) <= MOST_ADDRESSES:
        raise Invalid(fields={"redirect_uris": _("must have 1 to %s addresses") % MOST_ADDRESSES})
    for each in redirect_uris:
        if not _is_safe(each):
            raise Invalid(
                fields={
                    "redirect_uris": _(
                        "must be https, http on this computer, or a scheme of the program's own"
                    )
                }
            )
    unused = _unused()
    if unused.count() >= MOST_UNUSED:
        oldest = unused.order_by("created_at").values_list("pk", flat=True)[: MOST_UNUSED // 10]
        OAuthClient.objects.filter(pk__in=list(oldest)).delete()
    return OAuthClient.objects.create(
        name=_clean_name(name), redirect_uris=list(redirect_uris), created_at=now
    )


def find(public_id: str) -> OAuthClient | None:
    return None if "\0" in public_id else OAuthClient.objects.filter(public_id=public_id).first()


def is_registered(client: OAuthClient, redirect_uri: str) -> bool:
    """Return whether the client registered this redirect URI.

    URIs must be equal, except that the port of a loopback address may differ (RFC 8252).
    """
    return any(
        each == redirect_uri or _but_for_its_port(each) == _but_for_its_port(redirect_uri) is not None
        for each in client.redirect_uris
    )


def sweep_clients(*, now: datetime) -> int:
    """Delete the clients that registered more than ``UNUSED_FOR`` ago and were never authorized.

    Return the number deleted.
    """
    return _unused().filter(created_at__lt=now - UNUSED_FOR).delete()[0]


def _unused() -> QuerySet[OAuthClient]:
    return OAuthClient.objects.filter(keys=None, codes=None)


def _is_safe(address: str) -> bool:
    parts = _split(address)
    if parts is None or len(address) > ADDRESS_LENGTH or "#" in address or parts.username is not None:
        return False
    if parts.scheme == "https":
        return HOST.fullmatch(parts.hostname or "") is not None
    if parts.scheme == "http":
        return parts.hostname in LOOPBACK
    rest = address.removeprefix(f"{parts.scheme}:")
    return not NOT_THEIRS.fullmatch(parts.scheme) and not HANDED_ON.search(rest) and bool(rest.strip("/"))


def _but_for_its_port(address: str) -> SplitResult | None:
    """Return a loopback address without its port, or None for any other address."""
    parts = _split(address)
    if (
        parts is None
        or parts.scheme != "http"
        or parts.hostname not in LOOPBACK
        or parts.username is not None
    ):
        return None
    return parts._replace(netloc=parts.hostname)


def _split(address: str) -> SplitResult | None:
    if not address.isascii() or not address.isprintable() or "\\" in address or " " in address:
        return None
    try:
        parts = urlsplit(address)
        parts.port  # noqa: B018  # raises for an invalid port
    except ValueError:
        return None
    return parts if parts.scheme else None


def _clean_name(name: str) -> str:
    """Return a program's name without characters that are invisible, change the text direction, or resemble quotation
    marks.
    """
    seen = name.translate(UNSEEN).translate(QUOTES)
    shown = "".join(" " if unicodedata.category(each)[0] in "CZ" else each for each in seen)
    return " ".join(shown.split())[:60].strip() or "A program"
