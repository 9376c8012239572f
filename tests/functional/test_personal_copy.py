"""The download of a personal data export in the profile."""

from __future__ import annotations

import zipfile
from collections.abc import Callable

from playwright.sync_api import Page

from tests.functional.conftest import LOOKS, PASSWORD, shoot, sign_up
from tests.functional.test_accessibility import faults


@LOOKS
def test_a_copy_is_fetched(open_page: Callable[..., Page], size: str, scheme: str) -> None:
    page = open_page(size, scheme)
    page.emulate_media(reduced_motion="reduce")
    sign_up(page, f"dora-{size}-{scheme}")
    page.goto("/profile/#data")
    page.get_by_role("link", name="Data", exact=True).click()
    page.get_by_role("link", name="A copy of your data").click()
    page.get_by_label("Password").fill(PASSWORD)  # protects an unattended browser
    page.get_by_role("button", name="Continue").click()
    with page.expect_download() as fetched:
        page.get_by_role("link", name="Download").click()
    with zipfile.ZipFile(fetched.value.path()) as archive:
        assert {"README.txt", "memoryhub.jsonl", "about-you.jsonl"} <= set(archive.namelist())
    assert faults(page) == []
    shoot(page, f"personal-copy-{size}-{scheme}")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
