"""The language of pages, API answers and mails. Stored data is never translated: tests/test_access_matrix.py."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from gettext import NullTranslations
from html.parser import HTMLParser

import pytest
from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.test import Client
from django.utils import translation
from django.utils.translation import trans_real

from chat.views import connect
from memoryhub.http.middleware import asked_for
from memoryhub.ids import new_id
from memoryhub.localization import translated
from tests.api import Api, error_of
from tests.conftest import Cast
from tests.fakes.pseudo_language import CLOSED, OPEN
from tests.test_attacks import READING_PAGES, client_of
from tests.test_translatable import SAME_EVERYWHERE
from tests.world import EachRow, World
from workspaces.views.model_connections import PRESETS

pytestmark = pytest.mark.django_db
LOGIN = "/accounts/login/"


def test_a_browser_is_answered_in_the_first_language_that_we_have() -> None:
    for header, language in (
        ("", "en"),
        ("de", "de"),
        ("de-AT,de;q=0.9,en;q=0.5", "de"),
        ("en-GB,de;q=0.9", "en"),
        ("pl,es;q=0.4", "es"),
        ("zh-CN", "zh-hans"),
        ("pt", "pt-br"),
        ("pt-BR", "pt-br"),
        ("ar-EG", "ar"),
        ("*", "en"),
        ("pl", "en"),
        ("fr;q=0, de", "de"),
        ("a" * 100_000, "en"),
        ("de;q=x;;,\x01,,", "en"),
    ):
        assert asked_for(header) == language, header[:100]


def begins(page: str) -> str:
    """Return the opening html tag."""
    return " ".join(re.findall(r"<html[^>]*>", page)[0].split())


def text_of_form(page: str, action: str) -> str:
    return next(form for form in re.findall(r"<form.*?</form>", page, re.S) if f'action="{action}"' in form)


def test_the_profile_is_before_the_browser_and_programs_follow_their_request(
    cast: Cast, client: Client, pseudo_language: str
) -> None:
    client.force_login(cast.owner)
    german = {"Accept-Language": pseudo_language}
    assert f"{OPEN}Account{CLOSED}" in client.get("/profile/", headers=german).content.decode()

    form = text_of_form(client.get("/profile/").content.decode(), "/profile/language/")
    assert 'hx-trigger="change, submit"' in form and "<noscript>" in form, "it is saved as it is changed"
    saved = client.post("/profile/language/", {"language": "ar"}, headers=german | {"HX-Request": "true"})
    assert saved["HX-Refresh"] == "true", "all of the page is in another one"
    page = client.get("/profile/", headers=german)
    assert begins(page.content.decode()) == '<html lang="ar" dir="rtl">'
    assert page["Content-Language"] == "ar" and "Accept-Language" in page["Vary"]
    assert client.post("/profile/language/", {"language": "klingon"}).status_code == 422

    missing = f"/chat/api/workspaces/{new_id('ws')}"
    assert client.get(missing).json()["error"]["message"].startswith("This workspace does")
    told = client.get(missing, headers=german).json()["error"]
    assert told["code"] == "not_found" and told["message"].startswith(f"{OPEN}This workspace")
    for english in ("/v1/models", "/mcp", "/admin/"):
        assert OPEN not in client.get(english, headers=german).content.decode()
    assert translation.get_language() == "en"

    client.post("/profile/language/", {"language": ""})
    assert begins(client.get("/profile/").content.decode()) == '<html lang="en" dir="ltr">'


def test_a_page_without_the_shell_runs_the_way_of_its_language() -> None:
    for address in ("/offline/", "/shared/mhl_wrong/"):
        page = Client().get(address, headers={"Accept-Language": "ar"}).content.decode()
        assert begins(page) == '<html lang="ar" dir="rtl">', address


def test_a_language_that_we_do_not_have_is_english_throughout() -> None:
    """Django's own texts come in a hundred languages, ours in seven."""
    html = Client().post(LOGIN, {}, headers={"Accept-Language": "pl"}).content.decode()
    assert begins(html) == '<html lang="en" dir="ltr">'
    assert "This field is required." in html


def test_what_is_stored_in_english_is_translated_where_it_is_shown(pseudo_language: str) -> None:
    stored = "The webhook was turned off. Their server said: no. Your message is saved."
    assert translated(stored) == stored
    with translation.override(pseudo_language):
        assert translated("").strip() == ""
        assert translated(stored).startswith(f"{OPEN}The webhook was turned off.{CLOSED} ")


class Patience(NullTranslations):
    def gettext(self, message: str) -> str:
        known = {
            "It asks to wait %s s.": "Bitte %s s warten.",
            "Nothing beyond line %s.": "Nichts nach Zeile %s.",
            "must have 1 to %s characters": "muss 1 bis %s Zeichen haben",
        }
        return known.get(message, message)

    def to_language(self) -> str:
        return "de"


def test_a_stored_sentence_keeps_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(trans_real._translations, "de", Patience())
    for stored, shown in (
        ("It asks to wait 13 s.", "Bitte 13 s warten."),
        ("No. It asks to wait 13 s.", "No. Bitte 13 s warten."),
        ("Their server said: 13 of 20.", "Their server said: 13 of 20."),
        ("Full by 90 %, or 7 %s.", "Full by 90 %, or 7 %s."),
        ("It asks to wait %s s.", "Bitte %s s warten."),
        ("Nothing beyond line 12,345.", "Nichts nach Zeile 12.345."),
        ("title: must have 1 to 120 characters.", "title: muss 1 bis 120 Zeichen haben."),
        ("note: nobody translates 120 of it.", "note: nobody translates 120 of it."),
    ):
        with translation.override("de"):
            assert translated(stored) == shown


def test_what_rest_refuses_is_said_in_the_language_of_the_request(cast: Cast, pseudo_language: str) -> None:
    api = Api(cast.owner)
    api.client.defaults["HTTP_ACCEPT_LANGUAGE"] = pseudo_language
    refused = [
        api.get("workspaces", limit=0),
        api.post("workspaces", {"name": 5}),
        api.post("workspaces", {"name": "a" * 1000}),
        api.post("workspaces", {"colour": "red"}),
        api.post("workspaces", []),
        api.patch(f"workspaces/{cast.workspace.public_id}", {}),
        api.post(f"workspaces/{cast.workspace.public_id}/members", {"username": "nobody", "role": "king"}),
    ]
    for answer in refused:
        fields = error_of(answer)["fields"]
        assert answer.status_code == 422 and fields and all(text.startswith(OPEN) for text in fields.values())
    assert error_of(refused[0])["fields"]["limit"] == f"{OPEN}Must be a whole number from 1 to 100.{CLOSED}"
    assert error_of(refused[2])["fields"]["name"] == f"{OPEN}Must have at most 120 characters.{CLOSED}"


class Words(HTMLParser):
    """The visible texts of a page, without those in brackets."""

    READ = {"title", "aria-label", "placeholder", "alt", "aria-description"}

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text: list[str] = []
        self._silent: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"script", "style", "code", "pre", "kbd"} or (tag == "option" and dict(attrs).get("lang")):
            self._silent.append(tag)
        self.text += [value or "" for name, value in attrs if name in self.READ]

    def handle_endtag(self, tag: str) -> None:
        if self._silent[-1:] == [tag]:
            self._silent.pop()

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.text.append(data)

    def untranslated(self) -> set[str]:
        text = re.sub(r"https?://\S+", " ", " ".join(self.text))
        while (shorter := re.sub(f"{OPEN}[^{OPEN}{CLOSED}]*{CLOSED}", " ", text)) != text:
            text = shorter
        return set(re.findall(r"[A-Za-z]{3,}", text))


def words_stored() -> set[str]:
    """Return every word in any column of the apps' tables."""
    found: list[str] = []
    for app in ("workspaces", "memories", "chat"):
        for model in apps.get_app_config(app).get_models():
            kinds = (models.CharField, models.TextField, models.JSONField, ArrayField)
            names = [f.attname for f in model._meta.concrete_fields if isinstance(f, kinds) and not f.choices]
            found += [repr(row) for row in model._default_manager.values_list(*names)] if names else []
    return set(re.findall(r"[A-Za-z]{3,}", " ".join(found)))


@pytest.fixture(scope="module")
def words_of_world(made_world: World) -> set[str]:
    return words_stored()


@cache
def names_of_programs() -> set[str]:
    """Return the names of programs with instructions for connecting them, and their files and commands."""
    known = [*connect.models("", ""), *connect.tools("", "")]
    said = [str(text) for each in known for text in (each.name, each.where)]
    said += [preset.name for preset in PRESETS.values() if isinstance(preset.name, str)]
    return set(re.findall(r"[A-Za-z]{3,}", " ".join(said)))


def test_a_page_says_nothing_that_cannot_be_translated(
    each_row: EachRow, words_of_world: set[str], pseudo_language: str
) -> None:
    """Texts of templates, scripts, choices, forms and dates are all translated."""
    untranslated = {}
    for row, world in each_row(READING_PAGES):
        client = client_of(world.cast.owner, row)
        response = client.get(world.address(row), headers={"Accept-Language": pseudo_language})
        if response.streaming or not response["Content-Type"].startswith("text/html"):
            continue
        left = Words(response.content.decode()).untranslated() - words_of_world - SAME_EVERYWHERE
        left -= names_of_programs()
        if left and left - words_stored():  # the page may have created a row
            untranslated[str(row)] = left
    assert untranslated == {}


def test_each_thread_and_task_speaks_its_own_language_until_it_is_done() -> None:
    async def speak(language: str, met: asyncio.Barrier) -> tuple[str, str]:
        translation.activate(language)
        await met.wait()
        return translation.get_language() or "", await asyncio.to_thread(translation.gettext, "New chat")

    async def both() -> list[tuple[str, str]]:
        met = asyncio.Barrier(2)
        async with asyncio.timeout(10):
            return await asyncio.gather(speak("en", met), speak("de", met))

    with translation.override("fr"):
        assert [language for language, _said in asyncio.run(both())] == ["en", "de"]
        with ThreadPoolExecutor(1) as another:
            assert another.submit(translation.get_language).result(10) == "en", "nobody chose one there"
        with translation.override("de", deactivate=True):
            assert translation.get_language() == "de"
        assert translation.get_language() == "en", "the installation's, once deactivated"
        translation.activate("fr")
    assert translation.get_language() != "fr"
