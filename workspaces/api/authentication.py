"""Authentication of the REST API by API key: ``Authorization: Bearer mh_…`` instead of a session.

An OAuth access token (``workspaces.accounts.oauth``) is accepted in place of its key.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework import authentication, exceptions, throttling
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from memoryhub.database.replicas import stands_in
from memoryhub.errors import Forbidden, NotFound
from workspaces.accounts import oauth
from workspaces.accounts.keys import KeyRefused, count_request, verify_key
from workspaces.api.base import ApiView
from workspaces.api.exceptions import SessionAuthentication
from workspaces.models import ApiKey, KeyScope, TokenKind, User


class KeyAuthentication(authentication.BaseAuthentication):
    """Authentication by bearer token. If a token is sent, the session is ignored, whether or not the token is valid."""

    def key_text(self, request: Request) -> str | None:
        """Return the bearer token of a request, or None."""
        scheme, _, text = authentication.get_authorization_header(request).strip().partition(b" ")
        return text.strip().decode("latin-1") if scheme.lower() == b"bearer" else None

    def authenticate(self, request: Request) -> tuple[User, ApiKey] | None:
        text = self.key_text(request)
        if text is None:
            return None
        try:
            key = self._opened_by(text, request.path_info)
        except KeyRefused as refusal:
            raise exceptions.AuthenticationFailed(str(refusal)) from None
        return key.user, key

    def _opened_by(self, text: str, path: str) -> ApiKey:
        if text.startswith(oauth.PREFIXES[TokenKind.ACCESS]):
            return oauth.verify_access(text, path=path, now=timezone.now())
        return verify_key(text, now=timezone.now())

    def authenticate_header(self, request: Request) -> str:
        """Return the WWW-Authenticate header, which tells a program where to find the OAuth metadata (RFC 9728)."""
        door = next(each for each in oauth.RESOURCES if oauth.is_below(request.path_info, each))
        where = request.build_absolute_uri(f"/.well-known/oauth-protected-resource{door}".rstrip("/"))
        wrong = 'error="invalid_token", ' if "authorization" in request.headers else ""
        return f'Bearer realm="MemoryHub", {wrong}resource_metadata="{where}", scope="read write"'


class KeyThrottle(throttling.BaseThrottle):
    """Rate limit of an API key: 429 with Retry-After."""

    retry_after: int | None = None

    def allow_request(self, request: Request, view: Any) -> bool:
        if isinstance(request.auth, ApiKey) and not stands_in():  # a read-only database cannot count requests
            self.retry_after = count_request(request.auth, now=timezone.now())
        return self.retry_after is None

    def wait(self) -> float | None:
        return self.retry_after


class KeyedView(ApiView):
    """Base of views that accept a session or an API key.

    A key acts as its creator, only in its own workspace, and never deletes.
    """

    authentication_classes = [KeyAuthentication, SessionAuthentication]
    throttle_classes = [KeyThrottle]
    only_reads: ClassVar[bool] = False  # POST changes nothing, and may use a replica
    any_scope: ClassVar[bool] = False  # the view itself refuses what read-only keys must not do
    session_only: ClassVar[bool] = False  # refuse API keys of any scope

    @property
    def key(self) -> ApiKey | None:
        """Return the API key of the request, or None for a session."""
        return self.request.auth if isinstance(self.request.auth, ApiKey) else None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.key is not None and hasattr(self, (request.method or "").lower()):  # other methods get 405
            self._hold_to_its_scope(self.key, request.method or "", kwargs.get("workspace_id"))

    def _hold_to_its_scope(self, key: ApiKey, method: str, workspace_id: str | None) -> None:
        if method == "DELETE" or self.session_only:
            raise Forbidden(
                _("An API key cannot delete this. Sign in with a browser to delete it."), code="session_only"
            )
        if workspace_id not in {None, key.workspace.public_id}:
            raise NotFound(_("This workspace does not exist, or this key is not for it."))
        may_write = key.scope == KeyScope.WRITE or self.any_scope
        if not (may_write or method in SAFE_METHODS or self.only_reads):
            raise Forbidden(_("This API key can only read."))
