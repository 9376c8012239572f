"""A JSON client for tests of the REST API."""

import time
from functools import cache
from typing import Any

from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from workspaces.models import User

API = "/chat/api"
V1 = "/api/v1"


@cache
def openapi_schema() -> dict[str, Any]:
    """Return the schema of the API, which takes seconds to generate, once a process. Not to be changed."""
    schema: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return schema


def type_password_again(client: Client) -> None:
    """Mark the session as re-authenticated, as the password page does."""
    session = client.session
    proof = {"method": "password", "at": time.time(), "reauthenticated": True}
    session["account_authentication_methods"] = [proof]
    session["account_authentication_methods_user"] = session["_auth_user_id"]
    session.save()


class Api:
    """A client: ``Api(user).post("workspaces", {...})``. Anonymous without a user; ``key`` authenticates by API key."""

    def __init__(self, person: User | None = None, *, base: str = API, key: str = "") -> None:
        self.base = base
        self.client = Client(headers={"authorization": f"Bearer {key}"} if key else None)
        if person is not None:
            self.client.force_login(person)

    def get(self, path: str, **query: Any) -> Any:
        return self.client.get(f"{self.base}/{path}", query)

    def post(self, path: str, body: Any = None) -> Any:
        return self.client.post(f"{self.base}/{path}", body or {}, content_type="application/json")

    def patch(self, path: str, body: Any, **headers: str) -> Any:
        return self.client.patch(
            f"{self.base}/{path}", body, content_type="application/json", headers=headers
        )

    def delete(self, path: str, body: Any = None) -> Any:
        return self.client.delete(f"{self.base}/{path}", body or {}, content_type="application/json")

    def raw(self, method: str, path: str, body: bytes | str, content_type: str = "application/json") -> Any:
        return self.client.generic(method, f"{self.base}/{path}", body, content_type=content_type)

    def pages(self, path: str, **query: Any) -> list[list[Any]]:
        """Return every page of a list, in order."""
        found, cursor = [], None
        while True:
            page = self.get(path, **query, **({"cursor": cursor} if cursor else {})).json()
            found.append(page["items"])
            cursor = page["next_cursor"]
            assert page["has_more"] == (cursor is not None)
            if cursor is None:
                return found


def error_of(response: Any) -> dict[str, Any]:
    return response.json()["error"]
