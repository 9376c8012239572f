"""A file uploaded with a message, asked about, and opened from the answer's citation."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, Route, expect

from tests.fakes.openai_server import Answer, Received, Reply
from tests.functional.conftest import ScriptedHub, finished, send, sign_up
from tests.functional.looks import look
from tests.functional.test_artifacts import artifacts_of
from tests.workspaces.documents.samples import SENTENCE, pdf

FOCUSED_WHEN_REDRAWN = """() => new Promise((done) => {
  document.body.addEventListener("htmx:afterSettle", done, { once: true });
  htmx.trigger(document.body, "brought");
}).then(() => document.activeElement.textContent.trim().replace(/\\s+/g, " "))"""


def reply(request: Received) -> Reply:
    said = "\n".join(str(message["content"]) for message in request.messages)
    return Answer("Under the blue pot [1]." if SENTENCE in said else "I do not know.")


def test_a_pdf_is_brought_asked_about_and_opened_at_its_page(
    open_scripted_page: Callable[..., Page], scripted_hub: ScriptedHub
) -> None:
    scripted_hub.server.respond = reply
    page = open_scripted_page()
    sign_up(page, "documents")
    page.locator("[data-attach-files]").set_input_files(
        [
            {"name": "House.pdf", "mimeType": "application/pdf", "buffer": pdf("Welcome", SENTENCE)},
            {"name": "broken.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.4 no"},
        ]
    )
    files = page.locator(".attached__file")
    expect(files).to_have_count(2)
    expect(files.nth(1)).to_contain_text("damaged", timeout=30_000)
    files.nth(1).get_by_role("button", name="Leave out").click()
    expect(page.locator("[data-composer]")).to_be_focused()
    answer = send(page, "Where is the key?")  # waits until the file is read
    finished(answer)
    expect(page.locator(".attached__file")).to_have_count(0)
    last = page.locator(".message--assistant").last
    cited = last.locator("a.citation")
    expect(cited).to_have_accessible_name("[1] House.pdf, page 2")
    last.locator("summary", has_text="from documents").click()
    look(page, "documents-2-answered")
    cited.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"passage=1#passage-1$"))
    asked = page.locator("mark")
    expect(asked).to_have_text(re.compile(SENTENCE))
    expect(asked).to_be_in_viewport()
    page.goto(page.url.split("documents/")[0] + "documents/")
    page.get_by_role("button", name="Delete House.pdf").focus()
    assert page.evaluate(FOCUSED_WHEN_REDRAWN) == "Delete House.pdf"
    page.go_back()

    page.get_by_role("link", name="Ask about it").click()
    expect(page.locator("[data-chosen]")).to_contain_text("House.pdf")
    with page.expect_response(re.compile("documents/choices/")):
        page.locator(".chat-menu > summary").click()
    choice = page.get_by_label("Documents for this message")
    expect(choice.locator("option")).to_have_count(3)  # without the removed one
    choice.select_option("none")
    without = send(page, "Where is the key?")
    finished(without)
    expect(without).to_contain_text("I do not know.")


BRING = """(at, [how, ...files]) => {
  const data = new DataTransfer();
  for (const [name, text] of files) data.items.add(new File([text], name));
  const more = { bubbles: true, cancelable: true };
  if (how === "paste") at.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, ...more }));
  else at.dispatchEvent(new DragEvent(how, { dataTransfer: data, ...more }));
}"""


def test_files_are_pasted_and_dropped_each_with_its_progress_stopped_tried_again_and_known(
    open_scripted_page: Callable[..., Page],
) -> None:
    page = open_scripted_page("desktop", "light")
    sign_up(page, "documents_dropped")
    composer, files = page.locator("[data-composer]"), page.locator(".attached__file")
    held: list[Route] = []

    def meddle(route: Route) -> None:
        sent = (route.request.post_data_buffer or b"") if route.request.method == "POST" else b""
        if b"held.md" in sent:
            held.append(route)
        elif b"fails.md" in sent and not failed:
            failed.append(True)
            route.fulfill(status=503, json={"error": {"code": "x", "message": "The disk is full."}})
        else:
            route.continue_()

    failed: list[bool] = []
    page.route("**/documents", meddle)
    composer.evaluate(BRING, ["paste", ["pasted.md", "Blue bins go out on Mondays."]])
    expect(files).to_have_count(1)
    body = page.locator("body")
    body.evaluate(BRING, ["dragover", ["one.md", "x"]])
    expect(page.locator("#composer")).to_have_class(re.compile("composer--drop"))
    dropped = [["one.md", "The gas is off."], ["fails.md", "The key is lost."], ["held.md", "Never sent."]]
    body.evaluate(BRING, ["drop", *dropped])
    expect(page.locator("#composer")).not_to_have_class(re.compile("composer--drop"))
    expect(files).to_have_count(4)
    for number in (0, 1):
        expect(files.nth(number).locator("[data-state]")).to_have_text("ready", timeout=30_000)
    expect(files.nth(2)).to_contain_text("The disk is full.")
    files.nth(2).get_by_role("button", name="Retry").click()
    expect(files.nth(2).locator("[data-state]")).to_have_text("ready", timeout=30_000)
    expect(files.nth(3).locator("progress")).to_be_visible()
    expect(files.nth(3)).to_contain_text("uploading")
    files.nth(3).get_by_role("button", name="Leave out").click()
    expect(files).to_have_count(3)
    address = page.locator("#composer").get_attribute("data-documents")
    assert page.request.get(str(address)).json()["items"] == []  # drafts until they are sent
    failed.clear()
    page.goto(artifacts_of(page).replace("/artifacts/", "/documents/"))
    rows = page.locator("#document-rows .row")
    expect(page.locator("#document-rows")).not_to_contain_text("one.md")
    page.locator("#document-files").set_input_files(
        [{"name": "chosen.md", "mimeType": "text/markdown", "buffer": b"Chosen here."}]
    )
    body.evaluate(BRING, ["drop", ["fails.md", "Dropped here."], ["held.md", "Never sent, again."]])
    expect(files).to_have_count(3)
    expect(files.nth(0).locator("[data-state]")).to_have_text("ready", timeout=30_000)
    expect(files.nth(1)).to_contain_text("The disk is full.")
    look(page, "documents-6-page-desktop-light")
    files.nth(1).get_by_role("button", name="Retry").click()
    expect(files.nth(2).locator("progress")).to_be_visible()
    files.nth(2).get_by_role("button", name="Stop").click()
    expect(files).to_have_count(2)
    expect(rows).to_have_count(2)  # without a reload
    body.evaluate(BRING, ["drop", ["again.md", "Chosen here."]])
    expect(files.nth(2).locator("[data-state]")).to_have_text("already here, ready")
    for route in held:
        route.abort()


def test_a_file_beside_a_private_chat_is_ones_own_and_deleted_when_left_out(
    open_scripted_page: Callable[..., Page],
) -> None:
    page = open_scripted_page("phone", "light")
    sign_up(page, "documents_private")
    body, files = page.locator("body"), page.locator(".attached__file")
    readers = page.get_by_text("No other member can read this.")
    address = page.url
    page.get_by_label("Private chat").check(force=True)
    expect(readers).to_be_hidden()  # until there is a file
    body.evaluate(BRING, ["drop", ["diagnosis.md", "Nobody may know."]])
    expect(files.locator("[data-state]")).to_have_text("ready", timeout=30_000)
    expect(readers).to_be_visible()
    with page.expect_response(lambda answer: answer.request.method == "DELETE") as deleted:
        files.get_by_role("button", name="Leave out").click()
    assert deleted.value.status == 204
    expect(files).to_have_count(0)
    kept = str(page.locator("#composer").get_attribute("data-documents"))
    assert page.request.get(kept).json()["items"] == []

    page.goto(f"{address.split('?')[0]}documents/")
    page.get_by_label("Visible to", exact=True).select_option("on")
    page.locator("[data-attach-files]").set_input_files(
        {"name": "mine.md", "mimeType": "text/markdown", "buffer": b"The spare key lies at Mona's."}
    )
    row = page.locator("#document-rows li", has_text="mine")
    expect(row).to_contain_text("Only you", timeout=30_000)
    row.get_by_role("link", name="mine").click()
    page.get_by_label("Visible to", exact=True).select_option(index=1)
    page.get_by_role("button", name="Change").click()
    expect(page.get_by_text("sees “mine.md” now")).to_be_visible()

    page.goto(f"{address}?temporary=on")
    expect(page.locator("[data-attach]")).to_have_count(0)
    body.evaluate(BRING, ["drop", ["diagnosis.md", "Nobody may know."]])
    expect(page.get_by_text("Files cannot be added here")).to_be_visible()
    expect(files).to_have_count(0)
    assert len(page.request.get(kept).json()["items"]) == 1
