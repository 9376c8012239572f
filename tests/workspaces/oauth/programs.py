"""An OAuth client, and the user who authorizes it in a browser."""

import base64
import hashlib
import secrets
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from django.test import Client

from tests.api import type_password_again
from workspaces.models import User, Workspace

BACK = "http://127.0.0.1:33418/callback"
VERIFIER = secrets.token_urlsafe(48)
HERE = "http://testserver"


def challenge_of(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def register(**metadata: Any) -> Any:
    given = {"client_name": "Claude", "redirect_uris": [BACK]} | metadata
    return Client().post("/oauth/register", given, content_type="application/json")


def client_id(**metadata: Any) -> str:
    return str(register(**metadata).json()["client_id"])


def address(client_id: str, **changes: Any) -> str:
    """Return the authorization address; parameters that are None are left out."""
    asked: dict[str, Any] = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": BACK,
        "code_challenge": challenge_of(VERIFIER),
        "code_challenge_method": "S256",
        "state": "s1",
        "scope": "read write",
        "resource": f"{HERE}/mcp",
    } | changes
    return "/oauth/authorize?" + urlencode(
        {name: value for name, value in asked.items() if value is not None}
    )


def browser_of(person: User) -> Client:
    client = Client()
    client.force_login(person)
    type_password_again(client)
    return client


def consent(browser: Client, url: str, workspace: Workspace, **changes: str) -> Any:
    """Open the consent page and answer it."""
    shown = browser.get(url)
    assert shown.status_code == 200, shown.content
    return browser.post(url, {"workspace": workspace.public_id, "scope": "write", "answer": "yes"} | changes)


def said_in(response: Any) -> dict[str, str]:
    """Return the parameters of the redirect back to the client."""
    assert response.status_code == 302, (response.status_code, response.content)
    return {name: values[0] for name, values in parse_qs(urlsplit(response["Location"]).query).items()}


def ask(path: str = "/oauth/token", **given: Any) -> Any:
    return Client().post(path, urlencode(given), content_type="application/x-www-form-urlencoded")


def exchange(client_id: str, code: str, **changes: Any) -> Any:
    given: dict[str, Any] = {
        "grant_type": "authorization_code",
        "client_id": client_id,
        "code": code,
        "redirect_uri": BACK,
        "code_verifier": VERIFIER,
        "resource": f"{HERE}/mcp",
    } | changes
    return ask(**{name: value for name, value in given.items() if value is not None})


def refresh(client_id: str, token: str, **more: Any) -> Any:
    return ask(grant_type="refresh_token", client_id=client_id, refresh_token=token, **more)


def signed_in(person: User, workspace: Workspace, *, scope: str = "write", resource: str = "/mcp") -> Any:
    """Return the tokens of a new client, with its id."""
    program = client_id()
    url = address(program, resource=HERE + resource)
    code = said_in(consent(browser_of(person), url, workspace, scope=scope))["code"]
    return {**exchange(program, code, resource=HERE + resource).json(), "client_id": program}


def opens(token: str, path: str = "/mcp") -> int:
    """Return the status of a request with this token; 406 of ``/mcp`` means access to a wrong request."""
    headers = {"authorization": f"Bearer {token}"}
    client = Client(headers=headers)
    return (
        client.post(path, {}, content_type="application/json") if path == "/mcp" else client.get(path)
    ).status_code
