"""Browser features: the offline page, notifications, dictation and reading aloud."""

from collections.abc import Callable
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, expect

from tests.fakes.openai_server import HOLD, Answer
from tests.functional.conftest import ScriptedHub, open_more, sign_up
from tests.functional.keys import press

HEARS = """window.SpeechRecognition = class {
  start() { setTimeout(() => this.onresult({ results: [[{ transcript: "buy plums" }]] }), 0); }
  stop() { setTimeout(() => this.onend(), 0); }
};"""
SPEAKS = """window.spoken = [];
window.SpeechSynthesisUtterance = class { constructor(text) { this.text = text; } };
const voices = ["Cloud", "Here"].map((name) => ({ name, lang: "en-GB", localService: name === "Here" }));
Object.defineProperty(window, "speechSynthesis", { value: {
  getVoices: () => voices,
  speak: (said) => spoken.push(said),
  cancel: () => spoken.at(-1)?.onend(),
  addEventListener() {},
} });
"""
# The notifications that the tabs passed to the browser. Without a desktop it sometimes forgets those it shows.
RECORDS_NOTIFICATIONS = """const { showNotification } = ServiceWorkerRegistration.prototype;
ServiceWorkerRegistration.prototype.showNotification = async function (title, options) {
  await showNotification.call(this, title, options);
  localStorage.notified = JSON.stringify([...JSON.parse(localStorage.notified ?? "[]"), [title, options.tag]]);
};
"""
NOTIFY = """
from chat.chats.services import LONG, notify_done
from workspaces.models import User
for url in {urls}:
    notify_done(User.objects.get(username="nora"), "answer", url, took=LONG)
"""


def test_without_a_connection_there_is_a_page_and_nothing_else_is_kept(
    browser: Browser, scripted_hub: ScriptedHub
) -> None:
    context = browser.new_context(base_url=scripted_hub.address, viewport={"width": 390, "height": 844})
    try:
        page = context.new_page()
        page.goto("/accounts/login/")
        sign_up(page, "olaf")
        page.evaluate("() => navigator.serviceWorker.ready")
        page.wait_for_function("() => navigator.serviceWorker.controller")
        page.reload()
        kept = page.evaluate(
            "async () => (await (await caches.open('offline-1')).keys()).map((it) => new URL(it.url).pathname)"
        )
        assert "/offline/" in kept
        assert all(path == "/offline/" or path.startswith("/static/") for path in kept)
        context.set_offline(True)
        page.goto("/")
        expect(page.get_by_role("heading", name="MemoryHub cannot be reached")).to_be_visible()
        context.set_offline(False)
        page.get_by_role("link", name="Try again").click()
        expect(page.get_by_role("textbox", name="Message", exact=True)).to_be_visible()
    finally:
        context.close()


def test_long_answer_is_notified_unless_a_tab_shows_it(
    open_page_with_notifications: Callable[..., Page], scripted_hub: ScriptedHub
) -> None:
    page = open_page_with_notifications()
    page.context.grant_permissions(["notifications"])
    page.context.add_init_script(RECORDS_NOTIFICATIONS)
    sign_up(page, "nora")
    workspace = page.locator("body").get_attribute("data-workspace")
    page.goto("/profile/")
    press(page, "When a long answer or a run is done", "Space")
    # Permission arrives a moment later
    page.wait_for_function("() => localStorage.getItem('notify') === 'on'")
    new_chat = f"/workspaces/{workspace}/"
    other = page.context.new_page()
    other.goto("/profile/")

    def ask(words: str) -> str:
        page.goto(new_chat)
        scripted_hub.server.script(Answer(words))
        page.get_by_role("textbox", name="Message", exact=True).fill("Buy them")
        page.keyboard.press("Enter")
        expect(page.locator(".message--assistant")).to_contain_text(words)
        page.wait_for_url("**/chats/**")
        return urlsplit(page.url).path

    left, shown = ask("Plums"), ask("Pears")
    scripted_hub.stack.manage("shell", "-c", NOTIFY.format(urls=[shown, left]))
    page.wait_for_function("() => localStorage.notified")
    assert page.evaluate("() => JSON.parse(localStorage.notified)") == [["Your answer is ready", left]]


def test_dictation_and_reading_aloud(
    open_scripted_page: Callable[..., Page], scripted_hub: ScriptedHub
) -> None:
    page = open_scripted_page()
    page.emulate_media(reduced_motion="reduce")
    page.add_init_script(HEARS + SPEAKS)
    sign_up(page, "speaker")
    workspace = page.locator("body").get_attribute("data-workspace")
    page.get_by_role("button", name="Dictate").click()
    dialog = page.get_by_role("dialog", name="Dictation uses your browser's speech service")
    expect(dialog).to_be_visible()
    dialog.get_by_role("button", name="Dictate").click()
    message = page.get_by_role("textbox", name="Message", exact=True)
    expect(message).to_have_value("buy plums")
    page.get_by_role("button", name="Stop listening").click()
    expect(message).to_be_focused()

    scripted_hub.server.script(Answer("Plums bought."))
    page.keyboard.press("Enter")
    answer = page.locator(".message--assistant")
    expect(answer).to_contain_text("Plums bought.")
    aloud = answer.get_by_role("button", name="Read aloud")
    aloud.press("Enter")
    expect(aloud).to_have_attribute("aria-pressed", "true")
    told = page.evaluate("() => spoken.map((said) => [said.text.trim(), said.voice.name])")
    assert told == [["Plums bought.", "Here"]], "by a voice of this device"
    aloud.press("Enter")
    expect(aloud).to_have_attribute("aria-pressed", "false")
    assert page.evaluate("() => spoken.length") == 1, "pressed again, it stops"

    page.goto(f"/workspaces/{workspace}/settings/#model")
    page.get_by_label("Memories of this workspace never leave this machine").check()
    expect(page.locator("#toasts")).to_contain_text("Saved.")
    page.goto(f"/workspaces/{workspace}/")
    open_more(page)
    expect(page.get_by_role("button", name="Saved prompts")).to_be_visible()
    expect(page.get_by_role("button", name="Dictate")).to_have_count(0)


def test_an_answer_whose_stream_was_refused_once_ends_as_others_do(
    open_scripted_page: Callable[..., Page], scripted_hub: ScriptedHub
) -> None:
    """A proxy or a busy server refuses the stream: the page retries, and gets the end of the answer."""
    page = open_scripted_page()
    sign_up(page, "refused-once")
    page.route("**/stream/", lambda route: route.fulfill(status=503), times=1)
    scripted_hub.server.script(Answer("Plums", HOLD, " bought."))
    page.get_by_role("textbox", name="Message", exact=True).fill("Buy plums?")
    page.keyboard.press("Enter")
    answer = page.locator(".message--assistant")
    expect(answer).to_contain_text("Plums")
    expect(page.locator("form[data-streaming]")).to_be_visible()
    scripted_hub.server.release()
    expect(answer).to_contain_text("Plums bought.")
    expect(page.locator("[data-stream], form[data-streaming]")).to_have_count(0)
