"""User stories by the keyboard alone: no mouse, and only the page itself moves the focus (keys.py)."""

import io
import re
from collections.abc import Callable, Iterator

import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, Route, expect

from chat.models import Import
from chat.tasks import run_import
from memories.models import Memory
from tests.conftest import Cast
from tests.factories import PASSWORD, make_chat, make_memory, make_message
from tests.fakes.openai_server import HOLD, Answer
from tests.functional.conftest import Open, ScriptedHub, finished
from tests.functional.keys import follow, press, tab_to, write
from tests.functional.test_installed import HEARS
from tests.functional.test_page import CODE, Model
from tests.workspaces.accounts.test_two_factor import code_of
from workspaces.models import ApiKey, Membership, User

SHOWN_ANEW = """answer => {
  const other = answer.cloneNode(true);
  answer.replaceWith(other);
  htmx.process(other);
}"""


def choose_file(page: Page, name: str, file: str, content: bytes, key: str = "Enter") -> None:
    with page.expect_file_chooser() as chooser:
        press(page, name, key)
    chooser.value.set_files({"name": file, "mimeType": "application/octet-stream", "buffer": content})


def take(page: Page, words: str) -> None:
    """Open the first result of the palette for these words."""
    page.keyboard.press("Control+k")
    page.keyboard.type(words)
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)


def go(page: Page, words: str, address: str) -> None:
    """Open the page of the first result, whose address contains ``address``."""
    take(page, words)
    page.wait_for_url(re.compile(re.escape(address)))


def a_picture() -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (80, 80), "teal").save(made, "PNG")
    return made.getvalue()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("database_beside_the_browser")
def test_a_profile(cast: Cast, open_as: Open) -> None:
    page = open_as(cast.editor)
    page.goto("/profile/")
    choose_file(page, "Choose a picture", "me.png", a_picture(), "Space")
    expect(page.locator("#own-picture img")).to_have_count(1)
    press(page, "Dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    tab_to(page, "Language")
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    assert User.objects.get(username="eddie").language == "", "nothing is saved on the way"
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("lang", "de")
    go(page, "language", "#language")
    tab_to(page, "Language")
    page.keyboard.press("Home")
    with page.expect_navigation():
        page.keyboard.press("Tab")  # leaving the field saves it
    expect(page.locator("html")).to_have_attribute("lang", "en")

    go(page, "two-factor", "/two-factor/")
    follow(page, "Set it up")
    secret = page.locator("code").inner_text()
    write(page, "Authenticator code", code_of(secret))
    follow(page, "Turn it on")
    follow(page, "I have saved them")
    expect(page.get_by_text("10 codes are left")).to_be_visible()
    follow(page, "Turn it off")
    follow(page, "Turn it off")
    expect(page.get_by_text("Your password alone opens your account")).to_be_visible()

    go(page, "api keys", "#api-keys")
    write(page, "Name", "Notes script")
    follow(page, "Create key")
    expect(page.locator("#new-key")).to_be_visible()
    press(page, "Programs")
    press(page, "Revoke")
    follow(page, "Revoke")
    assert ApiKey.objects.get(name="Notes script").revoked_at

    press(page, "Data")
    with page.expect_download() as saved:
        press(page, "Export everything")
    assert "eddie" in saved.value.path().read_text()
    go(page, "import", "/import")
    choose_file(page, "File", "notes.txt", b"The kiosk closes at six")
    follow(page, "Preview import")
    imported = Import.objects.get()
    run_import(import_id=imported.pk)
    page.reload()
    follow(page, "Import this")
    run_import(import_id=imported.pk)
    page.reload()
    follow(page, "See it in")
    expect(page.locator("[data-memory]")).to_contain_text("The kiosk closes at six")

    go(page, "delete your account", "/profile/delete/")
    write(page, "Type your username", "eddie")
    follow(page, "Delete my account for good")
    expect(page.get_by_text("deleted")).to_be_visible()
    assert not User.objects.filter(username="eddie").exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("database_beside_the_browser")
def test_a_workspace_from_its_settings_to_its_topics(cast: Cast, open_as: Open) -> None:
    chat = make_chat(cast.owner, cast.workspace, title="Crossings")
    make_message(chat, "When is the ferry?")
    make_message(chat, "At nine.", role="assistant")
    memory = make_memory("Maria takes the ferry at nine", cast.owner, cast.workspace)
    page = open_as(cast.owner)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/workspaces/{cast.workspace.public_id}/")

    go(page, "usage and budget", "/usage/")
    write(page, "Tokens per month", "1000000")
    follow(page, "Save")
    expect(page.get_by_text("The budget is saved.")).to_be_visible()

    go(page, "invite", "#members")
    tab_to(page, f"Role of {cast.viewer.username}")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    assert Membership.objects.get(user=cast.viewer).role == "viewer", "nothing is saved on the way"
    page.keyboard.press("Enter")
    expect(page.locator("#toasts")).to_contain_text(f"{cast.viewer.username} now has the role editor")
    tab_to(page, "Valid for")
    follow(page, "Create link")
    expect(page.get_by_label("Link of the invitation")).to_be_visible()
    follow(page, "Revoke")
    expect(page.get_by_label("Link of the invitation")).to_have_count(0)

    page.goto(f"/workspaces/{cast.workspace.public_id}/nodes/")
    write(page, "Name", "Crossing")
    follow(page, "Create topic")
    write(page, "Find a memory to link", "ferry")
    expect(page.locator("#found")).to_contain_text("Maria takes the ferry")
    follow(page, "Link")
    expect(page.locator("#memories")).to_contain_text("Unlink")

    go(page, "crossings", "/chats/")
    expect(page.get_by_role("heading", name="Crossings")).to_be_visible()
    with page.expect_download() as saved:
        take(page, "markdown")
    assert "At nine." in saved.value.path().read_text()
    go(page, "print", "/print/")
    expect(page.get_by_text("At nine.")).to_be_visible()
    page.go_back()

    page.keyboard.press("Control+.")
    page.keyboard.press("Control+.")
    press(page, "Forget")
    expect(page.locator(".forgotten")).to_be_visible()
    press(page, "More")
    follow(page, "Forget for good")
    follow(page, "Forget for good")
    expect(page.get_by_text("finds nothing that says it")).to_be_visible()
    assert not Memory.objects.filter(pk=memory.pk).exists()


@pytest.fixture
def model(scripted_hub: ScriptedHub) -> Iterator[Model]:
    yield Model(scripted_hub.server)
    scripted_hub.server.release()


def come_in(page: Page, username: str) -> None:
    page.goto("/accounts/signup/")
    write(page, "Username", username)
    write(page, "Password", PASSWORD)
    write(page, "Password (again)", PASSWORD)
    follow(page, "Create account")
    press(page, "Yes, remember")
    expect(page.locator("#consent")).to_have_count(0)
    expect(page.locator("[data-composer]")).to_be_focused()


def say(page: Page, text: str) -> Locator:
    """Send a message. Return the answer."""
    known = page.locator("#messages > .message--assistant").count()
    page.keyboard.press("Control+/")
    page.keyboard.type(text)
    page.keyboard.press("Enter")
    return page.locator("#messages > .message--assistant").nth(known)


def test_a_conversation(open_scripted_page: Callable[..., Page], model: Model) -> None:
    page = open_scripted_page()
    page.add_init_script(HEARS)
    come_in(page, "walker")
    composer = page.locator("[data-composer]")
    press(page, "Private chat", "Space")
    press(page, "More for this message")
    press(page, "Think", "Space")
    expect(page.locator("[data-chosen] button")).to_contain_text("Think")
    press(page, "Think")
    expect(page.locator("[data-chosen] button")).to_have_count(0)
    press(page, "Dictate")
    press(page, "Dictate")  # in the dialog that names the speech service
    expect(composer).to_have_value("buy plums")
    press(page, "Stop listening")
    page.keyboard.press("Control+a")
    press(page, "More for this message")
    choose_file(page, "Add files", "note.txt", b"The kiosk closes at six")
    expect(page.locator("[data-attached]")).to_contain_text("ready")

    model.answers = [Answer("So far", HOLD, " so good."), Answer(CODE), Answer("Green."), Answer("In June.")]
    answer = say(page, "Show me")
    expect(answer).to_contain_text("So far")
    expect(page.locator("#readers")).to_contain_text("Private, only you")
    press(page, "Stop")
    expect(answer.get_by_role("button", name="Retry")).to_be_visible()
    model.server.release()
    press(page, "Retry")
    expect(answer).to_contain_text("hello")
    finished(answer)
    held: list[Route] = []
    page.route("**/keep/", lambda route: held.append(route))
    with page.expect_request("**/keep/"):
        press(page, "Save")
    answer.evaluate(SHOWN_ANEW)
    held[0].continue_()
    expect(page.locator("#panel")).to_contain_text("hello")
    press(page, "Regenerate")
    expect(answer).to_contain_text("Green.")
    finished(answer)
    press(page, "Edit and send again")
    expect(page.locator("[data-editing] textarea")).to_be_focused()
    page.keyboard.type(", and when")
    page.keyboard.press("Enter")
    expect(page.locator("#messages > .message--assistant")).to_contain_text("In June.")

    follow(page, "Temporary chat")
    expect(page.locator("#readers")).to_contain_text("Temporary")


def test_a_receipt(open_scripted_page: Callable[..., Page], model: Model) -> None:
    page = open_scripted_page()
    page.set_viewport_size({"width": 1440, "height": 900})
    come_in(page, "walker2")
    focused = page.locator(":focus")
    take(page, "remember some")
    page.keyboard.type("The ferry leaves at nine")
    press(page, "Remember")
    expect(page.locator("#panel [data-memory]")).to_have_count(1)
    answer = say(page, "When does the ferry leave?")
    finished(answer)
    press(page, "Used 1 memory")
    for act, said in (("Not relevant", "Marked as not relevant"), ("Forget", "Forgotten.")):
        press(page, "More about")
        press(page, act)
        expect(answer.locator(".receipt")).to_contain_text(said)
        press(page, "Undo")
        expect(answer.locator(".receipt")).not_to_contain_text(said)
        expect(focused).to_have_count(1)
    press(page, "More about")
    press(page, "Edit")
    expect(answer.locator("textarea")).to_be_focused()
    page.keyboard.type(", not at ten")
    press(page, "Save")
    expect(answer.locator(".receipt")).to_contain_text("at nine, not at ten")
