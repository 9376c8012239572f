"""OAuth provider for the request handlers of the MCP SDK: registered clients, codes and tokens.

It is imported at the first OAuth request, because importing the SDK takes a second.
"""

from datetime import datetime
from typing import Any, cast

from asgiref.sync import sync_to_async
from mcp.server.auth.provider import AuthorizationCode, RefreshToken, RegistrationError, TokenError
from mcp.shared.auth import OAuthClientInformationFull
from mcp.shared.auth import OAuthToken as TokenAnswer
from pydantic import AnyUrl

from memoryhub.errors import Invalid
from workspaces.accounts import program_authorizations
from workspaces.accounts.program_authorizations import SCOPES, resource_of, scope_of
from workspaces.models import KeyScope, OAuthClient, OAuthCode, OAuthToken

Client = OAuthClientInformationFull


def client_information(client: OAuthClient) -> Client:
    return Client(
        client_id=client.public_id,
        client_name=client.name,
        redirect_uris=[AnyUrl(each) for each in client.redirect_uris],
        token_endpoint_auth_method="none",  # noqa: S106  no password
        scope=SCOPES[KeyScope.WRITE],
    )


class Provider:
    """The methods of ``OAuthAuthorizationServerProvider`` that the SDK's handlers call. Created for one request.

    ``base``: URL of this installation. ``resource``: the request's resource indicator.
    """

    def __init__(self, base: str, *, now: datetime, resource: str | None = None) -> None:
        self.base, self.resource, self.now = base, resource, now

    async def get_client(self, client_id: str) -> Client | None:
        client = await sync_to_async(program_authorizations.find)(client_id)
        return client_information(client) if client else None

    async def register_client(self, client_info: Client) -> None:
        """Register the client, and write the stored values into ``client_info``, which the SDK sends as its response.

        Every client is public, so it gets no secret, and may ask for all scopes.
        """
        addresses = [str(each) for each in client_info.redirect_uris or ()]
        try:
            client = await sync_to_async(program_authorizations.register)(
                client_info.client_name or "", addresses, now=self.now
            )
        except Invalid as error:
            raise RegistrationError("invalid_redirect_uri", error.message) from None
        ours = client_information(client)
        client_info.client_id, client_info.client_name = ours.client_id, ours.client_name
        client_info.token_endpoint_auth_method, client_info.scope = "none", ours.scope
        client_info.client_secret = client_info.client_secret_expires_at = None
        client_info.grant_types, client_info.response_types = ours.grant_types, ours.response_types

    async def load_authorization_code(
        self, client: Client, authorization_code: str
    ) -> AuthorizationCode | None:
        code = await sync_to_async(program_authorizations.find_code)(client.client_id, authorization_code)
        if code is None:
            return None
        return _Code(
            code=authorization_code,
            scopes=SCOPES[KeyScope(code.scope)].split(),
            expires_at=code.expires_at.timestamp(),
            client_id=client.client_id,
            code_challenge=code.challenge,
            redirect_uri=AnyUrl(code.redirect_uri),
            redirect_uri_provided_explicitly=code.names_redirect,
            resource=code.resource,
            row=code,
        )

    async def exchange_authorization_code(
        self, client: Client, authorization_code: AuthorizationCode
    ) -> TokenAnswer:
        self._hold_to(authorization_code.resource)
        row = cast(_Code, authorization_code).row
        return await self._tokens(program_authorizations.exchange_code, row)

    async def load_refresh_token(self, client: Client, refresh_token: str) -> RefreshToken | None:
        row = await sync_to_async(program_authorizations.find_refresh)(
            client.client_id, refresh_token, now=self.now
        )
        if row is None:
            return None
        return _Refresh(
            token=refresh_token,
            client_id=client.client_id,
            scopes=SCOPES[KeyScope(row.scope)].split(),
            expires_at=int(row.expires_at.timestamp()),
            resource=row.resource,
            row=row,
        )

    async def exchange_refresh_token(
        self, client: Client, refresh_token: RefreshToken, scopes: list[str]
    ) -> TokenAnswer:
        self._hold_to(refresh_token.resource)
        row = cast(_Refresh, refresh_token).row
        return await self._tokens(program_authorizations.exchange_refresh_token, row, scope=scope_of(scopes))

    def _hold_to(self, granted: str | None) -> None:
        if self.resource is not None and resource_of(self.base, self.resource) != granted:
            raise TokenError("invalid_target", "The token is for another resource than was agreed to.")

    async def _tokens(self, give: Any, row: OAuthCode | OAuthToken, **more: Any) -> TokenAnswer:
        try:
            tokens: program_authorizations.Tokens = await sync_to_async(give)(row, now=self.now, **more)
        except program_authorizations.GrantRefused as refusal:
            raise TokenError("invalid_grant", str(refusal)) from None
        return TokenAnswer(
            access_token=tokens.access,
            refresh_token=tokens.refresh,
            expires_in=int(program_authorizations.ACCESS_LIVES.total_seconds()),
            scope=SCOPES[KeyScope(tokens.scope)],
        )


class _Code(AuthorizationCode, arbitrary_types_allowed=True):
    row: OAuthCode


class _Refresh(RefreshToken, arbitrary_types_allowed=True):
    row: OAuthToken
