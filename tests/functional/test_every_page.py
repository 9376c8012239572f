"""All pages: no axe violations, colours in light and in dark; no overflow, also at 400 %; nothing cut or covered, even
with long names; and on a phone every control is large enough for a finger.

The pages are those of the access matrix that are whole pages, those of accounts, and those of the admin. Of pages that
consist of the same kinds of elements, one is checked.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from django.contrib import admin
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.fixtures import Settings

from chat.models import Chat
from memories.models import Extraction, Memory, Receipt, Refusal
from tests.api import type_password_again
from tests.conftest import Cast
from tests.factories import make_memory
from tests.functional.conftest import SIZES, SLOW, Open, shoot
from tests.functional.looks import COLOURS, SETTLED, faults
from tests.routes import PAGE_ROWS
from tests.world import World, make_world
from workspaces.models import Connection, User, Workspace

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("database_beside_the_browser"),
]
ENTRANCE = [
    "/accounts/login/",
    "/accounts/signup/",
    "/accounts/inactive/",
    "/accounts/password/reset/",
    "/accounts/password/reset/done/",
    "/accounts/password/reset/key/1-nothing/",
    "/accounts/password/reset/key/done/",
    "/accounts/confirm-email/",
    "/accounts/confirm-email/nothing/",
]
ACCOUNT = [
    "/accounts/email/",
    "/accounts/logout/",
    "/accounts/password/change/",
    "/accounts/reauthenticate/",
    "/accounts/two-factor/",
    "/accounts/two-factor/totp/activate/",
    "/nowhere/",
]
TWO_FACTOR = [
    "/accounts/two-factor/",
    "/accounts/two-factor/reauthenticate/",
    "/accounts/two-factor/totp/deactivate/",
    "/accounts/two-factor/recovery-codes/",
    "/accounts/two-factor/recovery-codes/generate/",
]
WIDTHS = SIZES | {"at 400 %": (320, 256)}  # of 1280
# Controls smaller than a finger, except links within text and keyboard-only ones.
SMALL = """() => {
  const fields = "select, summary, input:not([type=hidden]), textarea, label:has(input)";
  const pressed = `a[href]:not([tabindex='-1']), button, ${fields}`;
  const sizes = [...document.querySelectorAll(pressed)].filter((each) => each.checkVisibility()
    && !each.closest("p, dd, td, thead, li:not([class]), .visually-hidden, .prose, [data-dismiss]")
    && !each.closest(".skip-to-content-link, .select2-hidden-accessible, .selector")  // of the admin
    && !(each.matches("input") && each.closest("label"))).map((each) => {
    const box = (each.matches("[type=checkbox], [type=radio]") && each.labels[0] || each).getBoundingClientRect();
    const around = getComputedStyle(each, "::after");
    const reach = around.position === "absolute" && around.content !== "none" ? around : { width: 0, height: 0 };
    const [width, height] = ["width", "height"].map((side) => Math.max(box[side], parseFloat(reach[side]) || 0));
    return { width, height, html: each.outerHTML.slice(0, 120) };
  });
  return sizes.filter(({ width, height }) => width && height && (height < 43.5 || width < 43.5))
    .map(({ width, height, html }) => `${Math.round(width)} x ${Math.round(height)}: ${html}`);
}"""

# iOS zooms into a field with smaller text.
ZOOMED = """() => {
  const pressed = "[type=checkbox], [type=radio], [type=file], [type=submit]";
  const written = `input:not([type=hidden], ${pressed}), select, textarea`;
  return [...document.querySelectorAll(written)]
    .filter((each) => each.checkVisibility() && !each.matches(".select2-hidden-accessible"))
    .filter((each) => parseFloat(getComputedStyle(each).fontSize) < 16)
    .map((each) => `its text is small: ${each.outerHTML.slice(0, 120)}`);
}"""
# Text beyond the edge of the window or its container, without an ellipsis.
CUT = """() => {
  const found = [...document.querySelectorAll(".scroll, .sidebar__list, .panel__body")]
    .filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => `${each.className} moves sideways`);
  const tables = ".results[tabindex], .table-scroll[tabindex]";
  const scrolled = `pre, .tabs, .prose *, ${tables}, fieldset.module, .selector button`;
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const element = text.parentElement;
    const hidden = element.closest(".visually-hidden, .skip-link, .skip-to-content-link, svg, option");
    if (!text.data.trim() || hidden || !element.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    const { left, right, width } = range.getBoundingClientRect();
    for (let around = element; width && around; around = around.parentElement) {
      const { overflowX, textOverflow } = getComputedStyle(around);
      if (textOverflow === "ellipsis" || around.matches(scrolled)) break;
      const box = around === document.body ? { left: 0, right: innerWidth } : around.getBoundingClientRect();
      if ((overflowX !== "visible" || around === document.body) && (left < box.left - 1 || right > box.right + 1)) {
        found.push(`cut: ${text.data.trim().slice(0, 80)} in ${around.outerHTML.slice(0, 80)}`);
        break;
      }
    }
  }
  return found;
}"""
# Controls that something covers once they are scrolled into view.
COVERED = """() => {
  const pressed = "a[href], button, summary, select, input:not([type=hidden]), textarea";
  const seen = { visibilityProperty: true, opacityProperty: true };
  const found = [];
  for (const each of document.querySelectorAll(pressed)) {
    const skips = each.closest(".skip-link, .skip-to-content-link");
    const aside = each.closest("[inert], [aria-hidden=true], .visually-hidden, :disabled");
    if (skips || aside || !each.checkVisibility(seen)) continue;
    each.scrollIntoView({ block: "center", inline: "center" });
    const box = each.getClientRects()[0];
    if (!box || box.width < 2 || box.height < 2) continue;
    const there = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    if (each.contains(there) || each.closest("label")?.contains(there)) continue;
    found.push(`${each.outerHTML.slice(0, 120)} is under ${there?.outerHTML.slice(0, 80)}`);
  }
  return found;
}"""
# Whether chosen elements differ from their neighbours, and progress bars and bubbles have a border, in forced colours.
UNTOLD = """() => {
  const kept = ["outline", "borderTop", "borderBottom", "textDecorationLine", "color", "backgroundColor"];
  const plain = (value) => value.replace("rgba", "rgb").replace(/, 0\\)/g, ")"); // what is not there looks like what is
  const parts = (element) => [null, "::before", "::after"].map((part) => {
    const style = getComputedStyle(element, part);
    return kept.map((name) => plain(style[name])).join() + style.content;
  });
  const look = (element) => {
    return [element, element.parentElement].flatMap(parts).join() + element.querySelectorAll("svg").length;
  };
  const state = "[aria-pressed=true], [aria-selected=true], [aria-current]:not([aria-current=false])";
  const bars = [...document.querySelectorAll("progress")];
  bars.push(...document.querySelectorAll(".bubble"));
  const found = bars.filter((bar) => !parseFloat(getComputedStyle(bar).borderTopWidth));
  for (const chosen of document.querySelectorAll(state)) {
    const alike = (each) => each.localName === chosen.localName && each.classList[0] === chosen.classList[0]
      && each.parentElement.className === chosen.parentElement.className && !each.matches(state);
    const other = [...document.querySelectorAll(chosen.localName)].find(alike);
    if (other && look(other) === look(chosen)) found.push(chosen);
  }
  return found.map((each) => `not told in a system's colours: ${each.outerHTML.slice(0, 120)}`);
}"""
STATES = """() => [...document.querySelectorAll("progress, .bubble, [aria-pressed], [aria-selected], [aria-current]")]
  .map((each) => [each.localName, each.className, each.parentElement.className].join())"""
_known_states: set[str] = set()
LONG = "The quarterly planning of the northern distribution centre and all of its partners"


def faults_of(page: Page, address: str, *, is_admin: bool = False) -> list[str]:
    """Return the faults of a page at each width, with axe in one scheme and its rules about colours in the other."""
    page.goto(address)
    return faults_here(page, address, is_admin=is_admin)


def faults_here(page: Page, address: str, *, is_admin: bool = False) -> list[str]:
    found = []
    schemes = {"desktop": "light" if is_admin else "dark", "phone": "dark" if is_admin else "light"}
    for size, (width, height) in WIDTHS.items():
        page.set_viewport_size({"width": width, "height": height})
        if scheme := schemes.get(size):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
            page.evaluate(SETTLED)
            rules = {} if size == "desktop" else COLOURS
            found += [f"{size} {scheme} {fault}" for fault in faults(page, **rules)]
            shoot(page, f"every{address.replace('/', '-')}{size}-{scheme}"[:120])
        across = page.evaluate("document.documentElement.scrollWidth")
        if across > width:
            found.append(f"{address} {size}: is {across} wide")
        if is_admin and size not in SIZES:
            continue
        found += [f"{address} {size}: {each}" for each in page.evaluate(CUT) + page.evaluate(COVERED)]
        if size == "desktop":
            found += [f"{address}: {each}" for each in untold(page)]
        if size == "phone":
            found += [f"{address}: {small}" for small in page.evaluate(SMALL) + page.evaluate(ZOOMED)]
    return found


def untold(page: Page) -> list[str]:
    """Return chosen elements that forced colours do not show, if the page has some of a kind not checked before."""
    kinds = set(page.evaluate(STATES))
    if kinds <= _known_states:
        return []
    _known_states.update(kinds)
    page.emulate_media(color_scheme="light", forced_colors="active")
    page.evaluate(SETTLED)
    elements: list[str] = page.evaluate(UNTOLD)
    page.emulate_media(color_scheme="light", forced_colors="none")
    return elements


def client_of(person: User) -> Client:
    client = Client()
    client.force_login(person)
    type_password_again(client)
    return client


def whole_pages(world: World, person: User) -> dict[str, set[str]]:
    """Return the kinds of elements of each address of the matrix that answers a GET with a whole page.

    Fragments appear in their pages.
    """
    client, pages = client_of(person), dict[str, set[str]]()
    for row in PAGE_ROWS:
        if row.method != "GET" or row.in_threads or row.route.endswith("events/"):
            continue
        response: Any = client.get(world.address(row))
        is_page = response.get("Content-Type", "").startswith("text/html") and not response.streaming
        if response.status_code == 200 and is_page and b"<html" in response.content:
            pages[world.address(row)] = kinds(response)
    return pages


def kinds(answer: Any) -> set[str]:
    """Return the kinds of elements on a page: tags with types and classes, in the admin without names of fields."""
    tags = re.findall(r"<(\w+)([^>]*)", answer.content.decode())
    named = re.compile(r"^(field|column|model|app|current|action|fieldBox)-?")
    found = set()
    for tag, attributes in tags:
        said = " ".join(re.findall(r'\b(?:class|type)="([^"]*)"', attributes)).split()
        found.add(" ".join([tag, *sorted(each for each in said if not named.match(each))]))
    return found


def of_new_kinds(pages: dict[str, set[str]]) -> Iterator[str]:
    """Yield the pages with an element of a kind that no earlier one has, those with the most kinds first."""
    shown = set[str]()
    for address, made_of in sorted(pages.items(), key=lambda page: -len(page[1])):
        if made_of - shown:
            yield address
            shown |= made_of


def make_names_long(cast: Cast, world: World) -> None:
    """Give everything that people name a long name: some of many words, some without a break."""
    unbroken = LONG.replace(" ", "_").lower()
    Workspace.objects.filter(pk=cast.workspace.pk).update(name=LONG)
    Chat.objects.filter(public_id=world.ids["chat_id"]).update(title=unbroken)
    Connection.objects.filter(public_id=world.ids["connection_id"]).update(name=LONG[:60], model=unbroken)
    for person in (cast.owner, cast.viewer):
        person.username = f"{person.username}_{unbroken}"
        person.save()


def test_no_page_of_the_matrix_has_a_fault(cast: Cast, open_as: Open, settings: Settings) -> None:
    settings.EMBEDDED_MODEL, settings.LLM_MODEL = False, LONG.replace(" ", "-")
    world = make_world(cast)
    make_names_long(cast, world)
    page = open_as(cast.owner)
    pages = whole_pages(world, cast.owner)
    assert len(pages) > 15, pages
    found = [fault for address in of_new_kinds(pages) for fault in faults_of(page, address)]
    page, workspace = open_as(cast.viewer), f"/workspaces/{world.ids['ws_id']}/"
    for address in (workspace, f"/chats/{world.ids['chat_id']}/"):
        found += faults_of(page, address)
    found += faults_of(open_as(cast.stranger), workspace)
    assert not found, "\n".join(found)


def test_no_page_of_accounts_has_a_fault(cast: Cast, open_as: Open) -> None:
    found = faults_of_accounts(open_as(None), Client(), ENTRANCE)
    found += faults_of_accounts(open_as(cast.owner), client_of(cast.owner), ACCOUNT)
    TOTP.activate(cast.owner, "A" * 32)
    RecoveryCodes.activate(cast.owner)
    found += faults_of_accounts(open_as(cast.owner), client_of(cast.owner), TWO_FACTOR)
    assert not found, "\n".join(found)


def faults_of_accounts(page: Page, client: Client, addresses: list[str]) -> list[str]:
    pages = {address: kinds(client.get(address)) for address in addresses}
    return [fault for address in of_new_kinds(pages) for fault in faults_of(page, address)]


def test_the_page_of_the_api_has_no_fault_and_does_what_is_tried(cast: Cast, open_as: Open) -> None:
    page = open_as(cast.owner)
    page.goto("/api/docs/#/chats/chats_create")
    route = page.locator(".opblock.is-open")
    route.wait_for(timeout=SLOW)  # the schema is generated first
    route.get_by_role("button", name="Try it out").click()
    route.get_by_label("Request body").fill('{"title": "Tried here"}')
    route.get_by_role("button", name="Execute").click()
    expect(route.locator(".live-responses-table")).to_contain_text("201")
    assert Chat.objects.filter(title="Tried here", created_by=cast.owner).exists()
    route.get_by_role("tab", name="Schema").first.click()
    page.get_by_role("button", name="Authorize", exact=True).first.click()
    expect(page.get_by_role("button", name="Close").first).to_be_visible()
    found = faults(page)
    for width, height in WIDTHS.values():
        page.set_viewport_size({"width": width, "height": height})
        found += page.evaluate(CUT)
    assert not found, "\n".join(found)


def make_what_staff_look_into(cast: Cast) -> None:
    """Create a pair to decide, a refusal, a failed extraction, and a receipt whose id is as wide as ids get."""
    place, now = {"workspace": cast.workspace}, timezone.now()
    older, newer = (
        make_memory(f"The meeting is at {when}", cast.owner, cast.workspace) for when in ("ten", "two")
    )
    Memory.objects.filter(pk=newer.pk).update(may_replace=older)
    Refusal.objects.create(**place, day=now.date(), source_type="user", kind="openai", number=3)
    asked = {"chat_id": "chat_" + "a" * 24, "message_id": "msg_" + "a" * 24, "source_type": "auto_chat"}
    Receipt.objects.update(message_id="msg_" + "W" * 24)
    why = {"status": "failed", "error": "The model did not answer in time."}
    Extraction.objects.create(**place, **asked, **why, user=cast.owner, next_attempt_at=now)


def test_no_page_of_the_admin_has_a_fault(cast: Cast, open_as: Open) -> None:
    make_world(cast)
    make_what_staff_look_into(cast)
    User.objects.filter(pk=cast.owner.pk).update(is_staff=True, is_superuser=True)
    cast.owner.refresh_from_db()
    client, pages = client_of(cast.owner), dict[str, set[str]]()
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        newest = model._default_manager.order_by("-pk").first()
        wanted = [reverse(f"{name}_changelist"), reverse(f"{name}_add")]
        if newest is not None:
            wanted.append(reverse(f"{name}_change", args=[newest.pk]))
        if isinstance(newest, Memory):  # one page of Django's shows the history of any row
            wanted.append(reverse(f"{name}_history", args=[newest.pk]))
        answers = {address: client.get(address) for address in wanted}
        pages |= {at: kinds(each) for at, each in answers.items() if each.status_code == 200}
    assert len(pages) > 30, pages.keys()
    page = open_as(cast.owner)
    addresses = ["/admin/", *of_new_kinds(pages)]
    found = [fault for address in addresses for fault in faults_of(page, address, is_admin=True)]
    newer = Memory.objects.exclude(may_replace=None).latest("pk")
    page.goto(reverse("admin:memories_memory_change", args=[newer.pk]))
    page.get_by_role("button", name="Keep both").click()
    found += faults_here(page, "/asks", is_admin=True)
    assert not found, "\n".join(found)
