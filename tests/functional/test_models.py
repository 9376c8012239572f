"""A model connected by the keyboard alone, chosen in the menu, failing, kept from a workspace, and deleted."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.fakes.openai_server import Failure, Received, Reply
from tests.functional.conftest import ScriptedHub, finished, send, sign_up
from tests.functional.keys import press, write
from tests.functional.looks import look
from tests.functional.test_readme_story import as_llama_answers


def test_a_model_is_connected_chosen_and_deleted(
    open_scripted_page: Callable[..., Page], scripted_hub: ScriptedHub
) -> None:
    server = scripted_hub.server

    def respond(request: Received) -> Reply:
        is_known = request.body["model"] == server.model
        return as_llama_answers(request) if is_known else Failure(404, "None such.", code="model_not_found")

    server.respond = respond
    page = open_scripted_page()
    sign_up(page, "mona")
    page.get_by_role("button", name="Not now").click()
    expect(page.locator("#consent")).to_have_count(0)
    workspace = page.locator("body").get_attribute("data-workspace")
    connect_by_keys(page, server.base_url, server.api_key, server.model)

    page.goto(f"/workspaces/{workspace}/")
    menu, wanted = page.locator(".model-choice > summary"), page.locator("#wanted-connection")
    for choice, value in (("scripted-model", "built-in"), ("My own model", "")):
        menu.press("Enter")
        page.locator("#model-menu").get_by_role("button", name=choice).last.press("Enter")
        expect(wanted).to_have_value(value)
    expect(page.locator(".model-choice__name")).to_contain_text("My own model")
    server.script(Failure(401, "no"))
    answer = send(page, "Hello")
    expect(answer.get_by_text("The model's endpoint refused the API key.")).to_be_visible()
    look(page, "models-failed")
    answer.get_by_role("button", name="Retry").click()
    expect(answer).to_contain_text("Noted.")
    finished(answer)
    expect(page.locator(".model-choice__name")).to_contain_text("My own model")
    chat = page.url

    page.goto(f"/workspaces/{workspace}/settings/#model")
    page.get_by_label("Memories of this workspace never leave this machine").press("Space")
    expect(page.locator("#toasts")).to_contain_text("Saved.")
    page.goto(chat)
    expect(page.locator("#model-notice")).to_contain_text("“My own model” is not marked local")
    menu.click()
    expect(page.locator("#model-menu")).to_contain_text("is not marked local")

    page.goto("/connections/")
    press(page, "Delete My own model")
    expect(page.get_by_text("What uses it continues with the next model that is set.")).to_be_visible()
    press(page, "Delete My own model")
    expect(page.get_by_text("1 workspace and 0 chats used it")).to_be_visible()
    page.goto(chat)
    lost = "“My own model”, which was chosen here, no longer exists"
    expect(page.locator("#model-notice")).to_contain_text(lost)


def connect_by_keys(page: Page, address: str, key: str, model: str) -> None:
    """Fill in the form with a wrong key and a wrong model first."""
    page.goto("/connections/")
    press(page, "Other")
    expect(page.locator("#preset-other")).to_have_attribute("aria-current", "true")
    write(page, "Address", address)
    write(page, "Key", "sk-wrong")
    press(page, "Show its models")
    expect(page.get_by_text("No list of models came from there")).to_be_visible()
    page.goto("/connections/?preset=other")
    write(page, "Address", address)
    write(page, "Key", key)
    press(page, "Show its models")
    report = page.locator("#connect-report")
    expect(report).to_contain_text("in the field now")
    expect(page.locator("#connect-models")).to_be_focused()
    expect(page.locator("#offered-models option")).to_have_attribute("value", model)
    write(page, "Model", "no-such-model")
    press(page, "More settings")
    write(page, "Name", "My own model")
    press(page, "Connect")
    expect(report).to_contain_text("does not answer")
    expect(page.get_by_role("button", name="Save anyway")).to_be_visible()
    look(page, "models-refused")
    write(page, "Model", model)
    press(page, "Test")
    expect(report).to_contain_text("It did not call the tool.")
    press(page, "Connect")  # the typed key is still in its field
    toast = "“My own model” is connected and answers in “Personal” now"
    expect(page.locator("#toasts")).to_contain_text(toast)
