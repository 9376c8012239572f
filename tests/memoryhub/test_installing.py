"""The manifest, the service worker and the offline page: the same for everyone, without personal data."""

import re
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from tests.conftest import Cast

pytestmark = pytest.mark.django_db


def test_the_manifest_names_icons_that_are_there() -> None:
    told = Client().get("/manifest.webmanifest")
    assert told["Content-Type"] == "application/manifest+json"
    icons = told.json()["icons"]
    assert {(icon["sizes"], icon["purpose"]) for icon in icons} >= {
        ("192x192", "maskable"),
        ("512x512", "any"),
    }
    for icon in icons:
        path = finders.find(re.sub(r"^/static/", "", re.sub(r"\.[0-9a-f]{12}\.png$", ".png", icon["src"])))
        assert isinstance(path, str)
        assert Path(path).read_bytes().startswith(b"\x89PNG")


def test_the_page_that_browsers_keep_has_nothing_of_anybody(cast: Cast) -> None:
    client = Client()
    client.force_login(cast.owner)
    mine, nobodys = client.get("/offline/"), Client().get("/offline/")
    assert mine.content == nobodys.content and b"cannot be reached" in mine.content
    assert not nobodys.cookies and b"csrf" not in nobodys.content.lower()
    worker = Client().get("/service-worker.js")
    assert worker["Content-Type"] == "text/javascript"
    kept = re.findall(r"cache\.(?:put|add|addAll)\((.*?)\)", worker.content.decode())
    assert kept == ["files", "PAGE, page"], "that page and its files, and no answer to anybody's request"
