"""A fake server for signing in by GitHub, GitLab and Google over real HTTP: codes, tokens, and profiles."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

CLIENT, SECRET = "memoryhub", "of the test"
TOKENS = {"/login/oauth/access_token", "/oauth/token", "/token"}


@dataclass
class Allowed:
    """The request behind a code, and the answer of each address."""

    asked: dict[str, str]
    says: dict[str, Any]  # by path
    status: int = 200


@dataclass
class OAuthProviders:
    by_code: dict[str, Allowed] = field(default_factory=dict)
    by_token: dict[str, Allowed] = field(default_factory=dict)

    def start(self) -> OAuthProviders:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self.server.providers = self  # type: ignore[attr-defined]
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def allow(self, address: str, says: dict[str, Any], status: int = 200) -> str:
        """Authorize the request of this address. Return the query of the redirect."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        code = f"code-{len(self.by_code)}"
        self.by_code[code] = Allowed(asked, says, status)
        return urlencode({"code": code, "state": asked["state"]})


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        """Exchange a code for a token, once, checking the client's secret and the code verifier."""
        providers: OAuthProviders = self.server.providers  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        said = {name: values[0] for name, values in parse_qs(body).items()}
        allowed = providers.by_code.pop(said["code"], None)
        digest = hashlib.sha256(said.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        is_right = (
            urlsplit(self.path).path in TOKENS
            and allowed is not None
            and (said["client_id"], said["client_secret"]) == (CLIENT, SECRET)
            and said["redirect_uri"] == allowed.asked["redirect_uri"]
            and (allowed.asked["code_challenge_method"], allowed.asked["code_challenge"])
            == ("S256", challenge)
        )
        if allowed is None or not is_right:
            self._say(400, {"error": "invalid_grant"})
            return
        token = f"token-{said['code']}"
        providers.by_token[token] = allowed
        self._say(200, {"access_token": token, "token_type": "bearer"})

    def do_GET(self) -> None:
        providers: OAuthProviders = self.server.providers  # type: ignore[attr-defined]
        asked = urlsplit(self.path)
        token = self.headers.get("Authorization", "").partition(" ")[2]
        token = token or parse_qs(asked.query).get("access_token", [""])[0]
        allowed = providers.by_token.get(token)
        if allowed is None or asked.path not in allowed.says:
            self._say(404, {"message": "Not Found"})
        else:
            self._say(allowed.status, allowed.says[asked.path])

    def _say(self, status: int, what: Any) -> None:
        body = what.encode() if isinstance(what, str) else json.dumps(what).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass
