"""Pages are compressed, and nothing else: no answer to a POST, and not the API with its ETags."""

import gzip

import pytest
from django.test import Client

from tests.conftest import Cast
from tests.factories import make_memory

pytestmark = pytest.mark.django_db
ASKS = {"accept-encoding": "gzip"}


def test_pages_are_compressed_at_another_length_each_time(cast: Cast) -> None:
    client = Client(headers=ASKS)
    client.force_login(cast.owner)
    address = f"/workspaces/{cast.workspace.public_id}/"
    pages = [client.get(address) for _ in range(8)]
    assert {page["Content-Encoding"] for page in pages} == {"gzip"}
    assert "Accept-Encoding" in pages[0]["Vary"]
    html = gzip.decompress(pages[0].content)
    assert b"</html>" in html
    assert len(pages[0].content) < len(html) / 3
    assert len({len(page.content) for page in pages}) > 1, "a length gives no secret away"
    assert "Content-Encoding" not in Client().get("/accounts/login/")
    assert Client(headers=ASKS).get("/accounts/login/")["Content-Encoding"] == "gzip"


def test_nothing_else_is(cast: Cast) -> None:
    client = Client(headers=ASKS)
    client.force_login(cast.owner)
    make_memory("Cats purr " * 100, cast.owner, cast.workspace)
    for path in ("memories", ""):
        answer = client.get(f"/chat/api/workspaces/{cast.workspace.public_id}/{path}".rstrip("/"))
        assert (answer.status_code, "Content-Encoding" in answer) == (200, False)
    assert "Content-Encoding" not in client.get("/export/")
    refused = client.post(f"/workspaces/{cast.workspace.public_id}/tidy/forget/", {"memory": "x" * 500})
    assert "Content-Encoding" not in refused
