"""A conversation by the keyboard alone, and the announcements of a screen reader, in order."""

from collections.abc import Callable
from threading import Event

from playwright.sync_api import Page, expect

from tests.fakes.openai_server import Answer, Failure, Received, Reply
from tests.functional.conftest import SLOW, ScriptedHub, finished, send, sign_up
from tests.functional.keys import press

LISTEN = """() => {
  window.heard = [];
  const say = (text) => text && text !== window.heard.at(-1) && window.heard.push(text);
  const plain = (node) => node.textContent.replace(/\\s+/g, " ").trim();
  new MutationObserver((changes) => {
    for (const { target, addedNodes } of changes) {
      const region = (target.nodeType === Node.TEXT_NODE ? target.parentElement : target)?.closest("[aria-live]");
      if (region?.id === "announce") say(plain(region));
      for (const node of addedNodes) {
        if (!(node instanceof Element)) continue;
        if (region && region.id !== "announce") say(plain(node));
        const alert = node.matches("[role=alert]") ? node : node.querySelector("[role=alert]:not([hidden])");
        if (alert && !region) say(plain(alert));
      }
    }
  }).observe(document.body, { childList: true, characterData: true, subtree: true });
}"""
NOTICED = '[{"text": "The user is vegetarian", "kind": "fact", "importance": 0.7}]'


def test_a_conversation_with_keys_alone_is_read_out_in_its_order(
    open_scripted_page: Callable[..., Page], scripted_hub: ScriptedHub
) -> None:
    said: list[Reply] = [Answer("I will remember that."), Failure(401, "wrong key")]
    is_read_out = Event()

    def respond(request: Received) -> Reply:
        if str(request.messages[0]["content"]).startswith("You read"):
            is_read_out.wait(60)  # the worker may be faster than the page's last announcement
            return Answer(NOTICED)
        return said.pop(0) if said else Answer("Fine.")

    scripted_hub.server.respond = respond
    page = open_scripted_page()
    sign_up(page, "reader_out")
    page.get_by_role("button", name="Yes, remember").press("Enter")
    expect(page.locator("#consent")).to_have_count(0)
    field = page.get_by_role("textbox", name="Message", exact=True)
    expect(field).to_be_focused()
    page.evaluate(LISTEN)

    page.keyboard.type("I am vegetarian")
    page.keyboard.press("Enter")
    answer = page.locator("#messages > .message--assistant").first
    finished(answer)
    page.wait_for_function("() => window.heard.some((each) => each.includes('The answer is finished'))")
    is_read_out.set()
    line = answer.locator("details.receipt")
    expect(line.locator("summary")).to_contain_text("Saved 1 memory", timeout=30_000)
    line.locator("summary").press("Enter")
    line.get_by_role("button", name="Undo").press("Enter")
    expect(line).to_contain_text("Forgotten.")
    readers = page.locator("#readers").get_by_role("button")
    readers.press("Enter")
    expect(page.locator("#readers")).to_contain_text("Private, only you")

    field.focus()
    page.keyboard.type("And now?")
    page.keyboard.press("Enter")
    failed = page.locator(".message__problem--failed")
    expect(failed).to_be_visible(timeout=30_000)
    page.wait_for_function("() => window.heard.some((each) => each.includes('stopped before its end'))")
    heard: list[str] = page.evaluate("window.heard")
    rest = iter(heard)
    for wanted in (
        "The answer is being written.",
        "The answer is finished. I will remember that.",
        "Memories saved: 1",
        "Forgotten.",
        "Other members can no longer read this chat.",
        "The answer is being written.",
        "The answer stopped before its end.",
    ):
        assert any(wanted in each for each in rest), (wanted, heard)
    failed.get_by_role("button", name="Retry").press("Enter")
    finished(page.locator("#messages > .message--assistant").last)
    expect(page.locator("#messages")).to_contain_text("Fine.")


def test_a_cut_answer_goes_on_and_a_chat_and_a_memory_are_pinned_with_keys_alone(
    open_scripted_page: Callable[..., Page], scripted_hub: ScriptedHub
) -> None:
    """Each action is announced, and the focus stays in place or beside it."""

    def respond(request: Received) -> Reply:
        if str(request.messages[0]["content"]).startswith("You read"):
            return Answer("[]")
        if "cut at its length limit" in str(request.messages[-1]["content"]):
            return Answer("kuro, which is shaded.")
        return Answer("Sencha, for one, and gyo", finish_reason="length")

    scripted_hub.server.respond = respond
    page = open_scripted_page()
    page.set_viewport_size({"width": 1440, "height": 900})
    focused = page.locator(":focus")
    sign_up(page, "pins_by_keys")
    page.get_by_role("button", name="Yes, remember").press("Enter")
    expect(page.locator("#consent")).to_have_count(0)
    page.evaluate(LISTEN)
    answer = send(page, "Which tea is green?")
    finished(answer)
    answer.get_by_role("button", name="Continue").press("Enter")
    expect(answer.locator(".prose")).to_contain_text("and gyokuro, which is shaded.")
    finished(answer)
    expect(answer.get_by_role("button", name="Continue")).to_have_count(0)
    expect(page.locator("[data-composer]")).to_be_focused()

    chats = page.locator("#chat-list")
    pinned = chats.get_by_role("region", name="Pinned")
    for act, count in (("Pin", 1), ("Unpin", 0)):
        chats.locator(".chat-row summary").press("Enter")
        expect(chats.get_by_role("button", name=act, exact=True)).to_be_visible()
        page.keyboard.press("ArrowDown")
        expect(focused).to_have_text(act)
        page.keyboard.press("Enter")
        expect(pinned).to_have_count(count)
        expect(chats.locator(".chat-row summary:focus")).to_have_count(1)

    page.locator("#panel").get_by_role("button", name="Add").press("Enter")
    page.keyboard.type("The ferry leaves at nine")
    press(page, "Remember")
    card = page.locator("#panel [data-memory]")
    expect(card).to_be_visible(timeout=SLOW)
    for act in ("Pin", "Unpin"):
        card.locator("summary", has_text="More").last.press("Enter")
        expect(card.get_by_role("button", name=act, exact=True)).to_be_visible()
        page.keyboard.press("ArrowDown")
        expect(focused).to_have_text(act)
        page.keyboard.press("Enter")
        expect(card.locator(".memory__state", has_text="Pinned")).to_have_count(int(act == "Pin"))
        expect(card.locator(":focus")).to_have_count(1)
    heard: list[str] = page.evaluate("window.heard")
    rest = iter(heard)
    for wanted in (
        "The answer is finished. Sencha, for one, and gyo",
        "The answer is being written.",
        "The answer is finished. Sencha, for one, and gyokuro, which is shaded.",
        "Pinned.",
        "Unpinned.",
        "Pinned.",
        "Unpinned.",
    ):
        assert any(wanted in each for each in rest), (wanted, heard)
