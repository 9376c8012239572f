"""A file is brought beside a message, asked about, and opened where the answer cites it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.fakes.openai_server import Answer, Received, Reply
from tests.functional.conftest import ScriptedHub, finished, open_more, shoot, sign_up
from tests.functional.test_accessibility import faults
from tests.functional.test_story import send
from tests.workspaces.documents.samples import SENTENCE, pdf


def reply(request: Received) -> Reply:
    said = "\n".join(str(message["content"]) for message in request.messages)
    return Answer("Under the blue pot [1]." if SENTENCE in said else "I do not know.")


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_a_pdf_is_brought_asked_about_and_opened_at_its_page(
    open_scripted_page: Callable[..., Page], scripted_hub: ScriptedHub, size: str, scheme: str
) -> None:
    scripted_hub.server.respond = reply
    page = open_scripted_page(size, scheme)
    sign_up(page, f"documents_{size}")
    page.locator("[data-attach-files]").set_input_files(
        [
            {"name": "House.pdf", "mimeType": "application/pdf", "buffer": pdf("Welcome", SENTENCE)},
            {"name": "broken.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.4 no"},
        ]
    )
    files = page.locator(".attached__file")
    expect(files).to_have_count(2)
    expect(files.nth(1)).to_contain_text("damaged", timeout=30_000)
    shoot(page, f"documents-1-brought-{size}-{scheme}")
    files.nth(1).get_by_role("button", name="Leave out").click()
    expect(page.locator("[data-composer]")).to_be_focused()
    answer = send(page, "Where is the key?")  # waits until the file is read
    finished(answer)
    expect(page.locator(".attached__file")).to_have_count(0)
    last = page.locator(".message--assistant").last
    cited = last.locator("a.citation")
    expect(cited).to_have_accessible_name("[1] House.pdf, page 2")
    last.locator("summary", has_text="from documents").click()
    shoot(page, f"documents-2-answered-{size}-{scheme}")
    assert not faults(page)
    cited.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"passage=1#passage-1$"))
    asked = page.locator("mark")
    expect(asked).to_have_text(re.compile(SENTENCE))
    expect(asked).to_be_in_viewport()
    shoot(page, f"documents-3-opened-{size}-{scheme}")
    assert not faults(page)

    page.get_by_role("link", name="Ask about it").click()
    expect(page.locator("[data-chosen]")).to_have_text("House.pdf")
    open_more(page)
    choice = page.get_by_label("Documents for this message")
    expect(choice.locator("option")).to_have_count(4)
    choice.select_option("none")
    shoot(page, f"documents-4-chosen-{size}-{scheme}")
    without = send(page, "Where is the key?")
    finished(without)
    expect(without).to_contain_text("I do not know.")
