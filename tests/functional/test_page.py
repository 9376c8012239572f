"""The conversation in use: scrolling while an answer grows, editing, regenerating, searching, keys."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.fakes.openai_server import HOLD, Answer, Received, Reply, ScriptedOpenAI
from tests.functional.conftest import SIZES, ScriptedHub, finished, open_panel, send, shoot, sign_in, sign_up
from tests.functional.looks import faults, look
from tests.stack import PASSWORD

LONG = "\n\n".join(
    f"Paragraph {number} of a long answer, with some words to fill its line." for number in range(40)
)
CODE = "Here it is:\n\n```python\nprint('hello')\n```\n\n- **bold** point"
SHIFTS = """() => {
  const shifts = [];
  const note = (entries) => {
    for (const entry of entries) {
      if (entry.hadRecentInput) continue;
      shifts.push([entry.value, entry.sources.map((s) => s.node?.className || s.node?.nodeName).join()]);
    }
  };
  const observer = new PerformanceObserver((list) => note(list.getEntries()));
  observer.observe({ type: "layout-shift", buffered: true });
  window.shiftsSoFar = async () => {
    for (let frames = 0; frames < 3; frames++) await new Promise((done) => requestAnimationFrame(done));
    note(observer.takeRecords());
    return shifts;
  };
}"""

MOVING = """() => document.getAnimations().filter((each) => {
  const timing = each.effect.getComputedTiming();
  return each.playState === "running" && timing.duration > 1 && timing.iterations > 1;
}).map((each) => each.animationName)"""


class Model:
    """Answers with the test's replies; extraction requests get an empty result."""

    def __init__(self, server: ScriptedOpenAI) -> None:
        self.server, self.answers = server, list[Reply]()
        server.hold()
        server.respond = self

    def __call__(self, request: Received) -> Reply:
        if str(request.messages[0]["content"]).startswith("You read"):
            return Answer("[]")
        return self.answers.pop(0) if self.answers else Answer("Fine.")


@pytest.fixture
def model(scripted_hub: ScriptedHub) -> Iterator[Model]:
    yield Model(scripted_hub.server)
    scripted_hub.server.release()


def field(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Message", exact=True)


def place(page: Page) -> float:
    return float(page.locator("#scroller").evaluate("box => box.scrollTop"))


def bottom(page: Page) -> float:
    return float(
        page.locator("#scroller").evaluate("box => box.scrollHeight - box.scrollTop - box.clientHeight")
    )


def test_on_a_phone_the_field_grows_and_a_growing_answer_leaves_the_scroll_position(
    open_scripted_page: Callable[..., Page], model: Model
) -> None:
    page = open_scripted_page("phone")
    sign_up(page, "scroller")
    field_grows_to_eight_lines(page)
    model.answers = [Answer(LONG, HOLD, "\n\nAnd the end.")]
    answer = send(page, "Tell me all of it")
    expect(answer).to_contain_text("Paragraph 39")
    assert bottom(page) < 2
    page.locator("#scroller").evaluate("box => { box.scrollTop = 200 }")
    jump = page.get_by_role("button", name="Jump to latest")
    expect(jump).to_be_visible()
    shoot(page, "page-jump")
    model.server.release()
    finished(answer)
    expect(answer).to_contain_text("And the end.")
    assert abs(place(page) - 200) < 2
    jump.click()
    expect(jump).to_be_hidden()
    assert bottom(page) < 2


def test_a_question_is_edited_and_its_earlier_version_brought_back(
    open_scripted_page: Callable[..., Page], model: Model
) -> None:
    page = open_scripted_page()
    sign_up(page, "editor")
    model.answers = [Answer("In **May**."), Answer("In June."), Answer("Whichever.")]
    finished(send(page, "When is the fair?"))
    finished(send(page, "And where?"))
    field(page).press("ArrowUp")
    expect(page.locator("[data-editing] textarea")).to_have_value("And where?")
    page.keyboard.press("Escape")
    expect(page.locator("[data-editing]")).to_have_count(0)
    first = page.locator("#messages > .message--user").first
    first.hover()
    first.get_by_role("button", name="Edit and send again").click()
    form = page.locator("[data-editing]")
    expect(form.locator("textarea")).to_be_focused()
    expect(form).to_contain_text("3 later messages are kept")
    look(page, "page-edit", "#messages")
    form.locator("textarea").fill("When is the book fair?")
    page.keyboard.press("Enter")
    expect(page.locator("#messages > .message--user")).to_have_count(1)
    finished(page.locator("#messages > .message--assistant").last)
    expect(page.locator("#messages > .message--assistant")).to_contain_text("Whichever.")

    versions = page.locator("details.versions")
    versions.locator("summary").click()
    expect(versions).to_contain_text("In May.")
    expect(versions).to_contain_text("And where?")
    look(page, "page-versions", "#messages")
    old = versions.locator(".message--user").first.get_attribute("id")
    page.goto(f"{page.url.split('?')[0]}?at={old}#{old}")  # as the link from the memory it produced
    expect(page.locator(".message--flash")).to_contain_text("When is the fair?")
    versions.get_by_role("button", name="Restore").click()
    expect(page.locator("#messages > .message--user")).to_have_count(2)
    expect(page.locator("#messages > .message--user").first).to_contain_text("When is the fair?")
    expect(page.locator("details.versions")).to_contain_text("Edited · 1 earlier version")


def test_an_answer_is_given_anew_in_every_tab_and_the_one_before_is_kept(
    open_scripted_page: Callable[..., Page], model: Model
) -> None:
    page = open_scripted_page()
    sign_up(page, "again")
    model.answers = [Answer("Red."), Answer("Gre", HOLD, "en.")]
    finished(send(page, "Which colour?"))
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator("#messages > .message--assistant")).to_contain_text("Red.")
    page.get_by_role("button", name="Regenerate").click()
    # The other tab follows the stream, not only the finished answer.
    expect(other.locator("#messages > .message--assistant[data-stream]")).to_contain_text("Gre")
    model.server.release()
    for tab in (page, other):
        expect(tab.locator("#messages > .message--assistant")).to_contain_text("Green.")
        expect(tab.locator("details.versions summary")).to_contain_text("1 earlier answer")
    page.locator("details.versions summary").click()
    expect(page.locator("details.versions")).to_contain_text("Red.")
    page.get_by_role("button", name="Restore").click()
    expect(page.locator("#messages > .message--assistant > .prose")).to_have_text("Red.")


def test_copying_notices_drafts_and_theme_of_a_conversation(
    open_scripted_page: Callable[..., Page], model: Model
) -> None:
    page = open_scripted_page("desktop", "dark")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    sign_up(page, "copier")
    model.answers = [Answer(CODE)]
    answer = send(page, "Show me")
    finished(answer)
    answer_and_code_are_copied(page, answer)
    newer_notice_replaces_the_older_in_the_middle(page)
    sent_message_is_no_draft(page)
    browser_bar_has_the_color_of_the_theme(page)


def answer_and_code_are_copied(page: Page, answer: Locator) -> None:
    answer.get_by_role("button", name="Copy as Markdown").click()
    assert page.evaluate("navigator.clipboard.readText()") == CODE
    expect(page.locator("#announce")).to_have_text("Copied")
    answer.locator(".code-block").hover()
    answer.get_by_role("button", name="Copy code").click()
    assert page.evaluate("navigator.clipboard.readText()") == "print('hello')\n"
    page.mouse.move(0, 0)
    page.set_viewport_size(
        {"width": 390, "height": 844}
    )  # a touch screen has no hover, so it is always visible
    expect(answer.get_by_role("button", name="Copy code")).to_have_css("opacity", "1")


def test_chats_are_found_by_search_and_by_the_palette_and_the_keys_do_what_their_dialog_says(
    open_scripted_page: Callable[..., Page], model: Model
) -> None:
    page = open_scripted_page()
    sign_up(page, "searcher")
    model.answers = [Answer("Noted: the <b>zebra</b> is in stall four."), Answer("Yes.")]
    finished(send(page, "Where do the animals go?"))
    page.goto("/")
    finished(send(page, "Something else"))
    chats_are_searched_in_titles_and_messages(page)
    palette_goes_to_chats_and_acts_on_the_open_one(page)
    keys_do_what_their_dialog_says(page)


def chats_are_searched_in_titles_and_messages(page: Page) -> None:
    page.locator("#scroller").focus()
    page.keyboard.press("/")
    expect(page.locator("#chat-search")).to_be_focused()
    page.keyboard.type("zeb")
    found = page.locator("#chat-list .chat-row")
    expect(found).to_have_count(1)
    expect(found.locator("mark")).to_have_text("zeb")
    expect(page.locator("#announce")).to_have_text("1 chat found.")
    expect(found).to_contain_text("Noted: the <b>zebra</b> is in stall four.")
    shoot(page, "page-search")
    assert faults(page, "#sidebar") == []
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".message--flash")).to_contain_text("zebra")
    page.locator("#chat-search").evaluate("field => field.value = ''")


def palette_goes_to_chats_and_acts_on_the_open_one(page: Page) -> None:
    page.goto("/")
    page.locator("#scroller").focus()
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Go to anything")
    expect(palette.get_by_role("link", name="Where do the animals go?")).to_be_visible()
    look(page, "page-palette", "dialog[open]")
    page.keyboard.type("tidy")
    expect(palette.get_by_role("link")).to_have_count(2)
    expect(palette.get_by_role("link").last).to_have_text(re.compile("Search everything for “tidy”"))
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/tidy/"))
    page.go_back()

    def take(words: str) -> None:
        page.keyboard.press("Control+k")
        page.keyboard.type(words)
        page.keyboard.press("Enter")

    take("animals")
    expect(page.get_by_role("heading", name="Where do the animals go?")).to_be_visible()
    take("private")
    expect(page.locator("#toasts")).to_contain_text("Other members can no longer read this chat")
    take("share")
    expect(page.get_by_role("button", name="Create and copy link")).to_be_visible()
    expect(page.locator(".share > summary")).to_be_focused()
    take("archive")
    expect(page.locator("#toasts")).to_contain_text("Archived “Where do the animals go?”")
    take("remember some")
    expect(page.get_by_label("What to remember")).to_be_focused()
    take("shortcuts")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog.get_by_role("button", name="Close")).to_be_focused()
    page.keyboard.press("Escape")


def keys_do_what_their_dialog_says(page: Page) -> None:
    page.locator("#scroller").focus()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog).to_be_visible()
    look(page, "page-keys", "dialog[open]")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()

    panel = page.locator("#panel")
    expect(panel).to_be_visible()
    page.keyboard.press("Control+.")
    expect(panel).to_be_hidden()
    page.keyboard.press("Control+.")
    expect(panel).to_be_visible()
    page.keyboard.press("Control+/")
    expect(field(page)).to_be_focused()
    page.keyboard.type("who? me / you")  # shortcuts are off while typing
    expect(field(page)).to_have_value("who? me / you")
    expect(dialog).to_be_hidden()
    page.locator("#scroller").focus()
    page.keyboard.press("/")
    expect(page.locator("#chat-search")).to_be_focused()

    page.locator("#scroller").focus()
    page.keyboard.press("?")
    dialog.get_by_role("checkbox").uncheck()
    dialog.get_by_role("button", name="Close").click()
    page.locator("#scroller").focus()
    page.keyboard.press("?")
    expect(dialog).to_be_hidden()
    page.keyboard.press("Control+Shift+o")
    page.wait_for_url(re.compile(r"/workspaces/"))
    expect(field(page)).to_be_focused()


def test_a_chat_is_pinned_archived_and_taken_back(
    open_scripted_page: Callable[..., Page], model: Model
) -> None:
    page = open_scripted_page("phone")
    sign_up(page, "tidy")
    for question in ("Plans for May", "Lunch on Friday"):
        page.goto("/")
        finished(send(page, question))
    page.get_by_role("button", name="Show the list of chats").first.click()
    first = page.locator("#chat-list .chat-row", has_text="Plans for May")

    def choose(name: str) -> None:
        first.locator("summary").click()
        first.get_by_role("button", name=name).click()

    first.locator("summary").click()
    assert first.locator(".menu__item").all_inner_texts() == ["Pin", "Archive", "Tags", "Rename", "Delete"]
    first.locator("summary").click()
    choose("Pin")
    pinned = page.get_by_role("region", name="Pinned")
    expect(pinned).to_contain_text("Plans for May")
    shoot(page, "page-pinned")
    assert faults(page, "#sidebar") == []
    choose("Archive")
    expect(first).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".toast")).to_have_count(0)
    expect(first).to_have_count(1)
    expect(pinned).to_have_count(0)
    choose("Archive")
    expect(first).to_have_count(0)
    page.get_by_text("Switch workspace").locator("..").click()
    page.get_by_role("button", name="Archived chats").click()
    expect(first).to_have_count(1)
    shoot(page, "page-archived")
    assert faults(page, "#sidebar") == []
    choose("Unarchive")
    expect(page.get_by_text("No chat is archived.")).to_be_visible()
    page.get_by_role("button", name="All chats").click()
    expect(page.locator("#chat-list .chat-row")).to_have_count(2)


def newer_notice_replaces_the_older_in_the_middle(page: Page) -> None:
    centred = """() => {
      const rect = (selector) => document.querySelector(selector)?.getBoundingClientRect() ?? new DOMRect();
      const [toast, around] = [rect(".toast"), rect("#conversation")];
      return toast.width && Math.abs(toast.x + toast.width / 2 - around.x - around.width / 2) <= 1;
    }"""
    for width, notice in (
        (900, "Other members can no longer read"),
        (1200, "All members of the workspace can read"),
    ):
        page.set_viewport_size({"width": width, "height": 800})
        page.locator("#readers button").click()
        expect(page.locator(".toast", has_text="read this chat")).to_have_text(re.compile(notice))
        page.wait_for_function(centred)


def browser_bar_has_the_color_of_the_theme(page: Page) -> None:
    bar = """() => [...document.querySelectorAll("[name=theme-color]")].filter((each) => matchMedia(each.media).matches)
      .map((each) => each.content)"""
    assert page.evaluate(bar) == ["#181715"]
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(24, 23, 21)"
    page.goto("/profile/")
    page.get_by_role("button", name="Light").click()
    assert page.evaluate(bar) == ["#fbfaf8"]
    page.reload()
    assert page.evaluate(bar) == ["#fbfaf8"]


def field_grows_to_eight_lines(page: Page) -> None:
    def height() -> float:
        return float(field(page).evaluate("area => area.clientHeight"))

    one = height()
    field(page).fill("\n".join("line" for _ in range(8)))
    eight = height()
    assert abs((eight - one) - 7 * 24) <= 8
    field(page).fill("\n".join("line" for _ in range(30)))
    assert abs(height() - eight) <= 1


def test_answer_is_announced_at_its_ends_and_nothing_moves_if_motion_is_reduced(
    open_scripted_page: Callable[..., Page], model: Model
) -> None:
    page = open_scripted_page()
    page.emulate_media(reduced_motion="reduce")
    sign_up(page, "listener")
    page.evaluate(
        """() => {
          window.heard = [];
          for (const region of document.querySelectorAll("[aria-live]")) {
            new MutationObserver(() => window.heard.push(region.textContent.trim()))
              .observe(region, { childList: true, characterData: true, subtree: true });
          }
        }"""
    )
    words = [f"word{number} " for number in range(60)]
    model.answers = [Answer(*words, HOLD, "last.")]
    answer = send(page, "Count for me")
    expect(answer).to_contain_text("word59")
    assert page.evaluate("window.heard") == ["The answer is being written."]
    assert page.evaluate(MOVING) == []
    assert answer.evaluate("element => !element.closest('[aria-live]')")
    model.server.release()
    finished(answer)
    expect(page.locator("#announce")).to_contain_text("The answer is finished. word0")
    assert len(page.evaluate("window.heard")) == 2


def test_nothing_on_the_page_jumps(open_scripted_page: Callable[..., Page], model: Model) -> None:
    """No layout shift at either width, from loading a conversation to the end of a streamed answer."""
    page = open_scripted_page()
    sign_up(page, "still")
    page.get_by_role("button", name="Yes, remember").click()
    expect(page.locator("#consent")).to_have_count(0)
    model.answers = [Answer(LONG)]
    finished(send(page, "Tell me all of it"))
    for size, (width, height) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        page.reload()
        page.evaluate(SHIFTS)
        expect(page.locator(".message--assistant").first).to_contain_text("Paragraph 39")
        if size == "desktop":
            expect(page.locator("#panel-filters")).to_be_visible()
        lines = [f"{line}\n\n" for line in LONG.split("\n\n")]
        model.answers = [Answer(*lines, "| a | b |\n|---|---|\n| 1 | 2 |\n\n", CODE)]
        answer = send(page, "Once more")
        finished(answer)
        expect(answer.locator(".actions")).to_be_attached()  # the actions appear in their reserved space
        shifts = page.evaluate("window.shiftsSoFar()")
        assert sum(value for value, _ in shifts) < 0.01, (size, shifts)


def sent_message_is_no_draft(page: Page) -> None:
    page.goto("/")
    expect(page.locator("[data-composer]")).to_have_value("")
    page.locator("[data-composer]").fill("Not sent yet")
    page.reload()
    expect(page.locator("[data-composer]")).to_have_value("Not sent yet")


def test_what_was_typed_when_the_session_ended_is_there_after_signing_in_and_for_nobody_else(
    open_scripted_page: Callable[..., Page], model: Model
) -> None:
    page = open_scripted_page()
    sign_up(page, "timed-out")
    model.answers = [Answer("Gladly.")]
    finished(send(page, "A first message"))
    chat = page.url
    page.context.clear_cookies(name="sessionid")
    page.locator("[data-composer]").fill("Typed for long")
    page.keyboard.press("Enter")
    page.get_by_label("Username").fill("timed-out")
    page.locator("input[name=password]").fill(PASSWORD)
    page.locator("form button[type=submit]").first.click()
    page.wait_for_url(chat)
    expect(page.locator("[data-composer]")).to_have_value("Typed for long")
    expect(page.locator(".message--user")).to_have_count(1)

    # Signed out and in again in another tab: this tab's token is outdated.
    other = page.context.new_page()
    page.context.clear_cookies()
    sign_in(other, "timed-out")
    with page.expect_navigation():
        page.locator("[data-composer]").press("Enter")
    expect(page.locator("[data-composer]")).to_have_value("Typed for long")
    expect(page.locator("#toasts")).to_have_count(1)
    model.answers = [Answer("At last.")]
    page.locator("[data-composer]").press("Enter")
    expect(page.locator(".message--user")).to_have_count(2)

    page.locator("[data-composer]").fill("For my eyes")
    keys = page.evaluate("Object.keys(sessionStorage).filter((key) => key.startsWith('draft:'))")
    person = page.evaluate("document.body.dataset.person")
    assert len(keys) == 1 and person.startswith("usr_") and keys[0].startswith(f"draft:{person}:")
    page.locator("[data-composer]").fill("")
    memory_typed_when_the_session_ended_is_shown_after_signing_in(page)


def memory_typed_when_the_session_ended_is_shown_after_signing_in(page: Page) -> None:
    open_panel(page).get_by_role("button", name="Add", exact=True).click()
    page.get_by_label("What to remember").fill("Plums are <b>ripe</b> in August")
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Remember", exact=True).click()
    page.get_by_label("Username").fill("timed-out")
    page.locator("input[name=password]").fill(PASSWORD)
    page.locator("form button[type=submit]").first.click()
    notice = page.locator("#toasts .toast")
    expect(notice).to_contain_text("this was not saved: Plums are <b>ripe</b> in August")
    shoot(page, "unsent")
    page.reload()
    notice.get_by_role("button", name="Copy", exact=True).click()
    assert notice.locator("[data-copy]").get_attribute("data-copy") == "Plums are <b>ripe</b> in August"
    notice.get_by_role("button", name="Close this notice").click()
    page.reload()
    expect(page.get_by_role("complementary", name="Memory")).to_be_visible()
    expect(notice).to_have_count(0)


def test_what_was_refused_or_not_reached_is_there_for_the_next_press(
    browser: Browser, scripted_hub: ScriptedHub, model: Model
) -> None:
    # A context of its own, as the console's errors about refused and failed requests fail a test otherwise
    context = browser.new_context(base_url=scripted_hub.address, reduced_motion="reduce")
    page = context.new_page()
    sign_up(page, "in-a-tunnel")
    model.answers = [Answer("Gladly.")]
    finished(send(page, "A first message"))
    menus_are_looked_up_again_after_a_failure(page)
    page.goto("/")
    too_long_text_is_refused_whole(page)
    context.close()


def menus_are_looked_up_again_after_a_failure(page: Page) -> None:
    for menu in (page.locator("details.share"), page.locator("details.model-choice")):
        page.context.set_offline(True)
        menu.locator("summary").click()
        expect(page.locator("#toasts")).to_contain_text("cannot be reached")
        expect(menu).not_to_have_attribute("open", "")
        page.context.set_offline(False)
        menu.locator("summary").click()
        expect(menu.locator("button, a").first).to_be_visible()
        menu.locator("summary").click()
        page.locator("#toasts").get_by_role("button").first.click()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    menu.locator("summary").click()
    expect(menu.locator("button, a").first).to_be_visible()
    assert not [url for url in asked if "/model" in url], "what has come is there"


def too_long_text_is_refused_whole(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate("() => navigator.clipboard.writeText('plum '.repeat(6600) + 'The end')")
    field = page.locator("[data-composer]")
    field.press("ControlOrMeta+v")
    page.keyboard.press("Enter")
    expect(page.locator("#toasts")).to_contain_text("message is too long: 33,007 characters, at most 32,000.")
    assert field.input_value().endswith("The end")
    page.get_by_role("complementary", name="Memory").get_by_role("button", name="Add", exact=True).click()
    said = page.get_by_label("What to remember")
    said.press("ControlOrMeta+v")
    page.get_by_role("button", name="Remember", exact=True).click()
    expect(page.locator("#memory-add")).to_contain_text("This is too long: 33007 characters, at most 2000.")
    assert said.input_value().endswith("The end")


def test_what_was_saved_has_an_undo_and_a_temporary_chat_saves_nothing(
    open_scripted_page: Callable[..., Page], model: Model
) -> None:
    page = open_scripted_page("phone")
    sign_up(page, "saver")
    page.get_by_role("button", name="Yes, remember").click()
    expect(page.locator("#consent")).to_have_count(0)
    noticed = '[{"text": "The user is vegetarian", "kind": "fact", "importance": 0.7}]'

    def respond(request: Received) -> Reply:
        mined = str(request.messages[0]["content"]).startswith("You read a conversation")
        return Answer(noticed) if mined else Answer("I will remember that.")

    model.server.respond = respond
    answer = send(page, "I am vegetarian")
    finished(answer)
    line = page.locator("#messages > .message--assistant details.receipt")
    expect(line.locator("summary")).to_contain_text("Saved 1 memory", timeout=30_000)
    line.locator("summary").click()
    expect(line.locator(".receipt__saved")).to_contain_text("vegetarian")
    look(page, "page-saved", "#messages")
    line.locator(".receipt__saved").get_by_role("button", name="Undo").click()
    expect(line.locator(".receipt__saved")).to_contain_text("Forgotten.")
    line.locator(".receipt__saved").get_by_role("button", name="Undo").click()
    expect(line.locator(".receipt__saved")).to_contain_text("vegetarian")
    panel = open_panel(page)
    expect(panel.locator("[data-memory]")).to_have_count(1)
    temporary_chat_says_what_it_is_and_keeps_nothing(page)


def temporary_chat_says_what_it_is_and_keeps_nothing(page: Page) -> None:
    page.goto("/")
    page.goto(f"{page.url}?temporary=on")
    expect(page.locator(".welcome__lead")).to_contain_text("No memories are used or saved")
    expect(page.locator("#memory-chip")).to_have_count(0)
    look(page, "page-temporary", "#main")
    finished(send(page, "I am vegetarian"))
    expect(page.locator("#readers")).to_contain_text("Temporary, only you")
    expect(page.locator("details.receipt")).to_have_count(0)
    page.goto("/")
    expect(page.locator("#chat-list .chat-row")).to_have_count(1)  # the one before


def test_a_reload_in_the_middle_loses_nothing_and_stop_keeps_the_text_so_far(
    open_scripted_page: Callable[..., Page], model: Model
) -> None:
    model.answers = [Answer("Once upon", HOLD, " a time."), Answer("There was", HOLD, " a keeper.")]
    page = open_scripted_page()
    sign_up(page, "reloader")
    expect(send(page, "Tell me a story about a lighthouse keeper.")).to_contain_text("Once upon")
    page.reload()
    answer = page.locator(".message--assistant").first
    expect(answer).to_contain_text("Once upon")
    model.server.release()
    finished(answer)
    expect(answer.locator(".prose")).to_have_text("Once upon a time.")
    expect(page.locator(".message--user")).to_contain_text("lighthouse keeper")

    model.server.hold()
    answer = send(page, "Another one")
    expect(answer).to_contain_text("There was")
    page.get_by_role("button", name="Stop").click()
    expect(answer.get_by_role("button", name="Retry")).to_be_visible()
    expect(answer.locator(".prose")).to_have_text("There was")
