"""A page used by the keyboard alone: Tab, arrows, Enter, Space and typing, never a pointer.

The focus is moved by script next to the element that a test goes to, and Tab is pressed for the last step alone: a
page takes a hundred presses otherwise. test_keyboard walks a whole page by Tab and finds the order of the document.
"""

from playwright.sync_api import Page

MOST_TABS = 120
# The accessible name of an element.
NAMED = """(element) => {
  const text = document.getElementById(element.getAttribute("aria-labelledby"))?.innerText;
  const name = element.getAttribute("aria-label") || text || element.labels?.[0]?.innerText || element.innerText || "";
  return name.replace(/\\s+/g, " ").trim();
}"""
# The accessible name of the focused element, and whether its focus is visible.
FOCUSED = f"""() => {{
  const element = document.activeElement;
  if (element === document.body) return ["", true];
  const around = [element, element.closest(".composer"), element.closest(".search"), element.closest("label")];
  const shows = around.some((candidate) => {{
    if (!candidate) return false;
    const style = getComputedStyle(candidate);
    return (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none";
  }});
  return [({NAMED})(element), shows];
}}"""
# The elements that Tab reaches, in the order of the document.
REACHED = """() => {
  const focusable = "a[href], button, input:not([type=hidden]), select, textarea, summary, iframe, [tabindex]";
  const seen = { visibilityProperty: true, contentVisibilityAuto: true };
  return [...(document.querySelector("dialog:modal") ?? document).querySelectorAll(focusable)].filter((each) =>
    each.tabIndex >= 0 && !each.matches(":disabled") && !each.closest("[inert]") && each.checkVisibility(seen)
    && (each.localName !== "summary" || each === each.parentElement.querySelector("summary")));
}"""
# Focus the element before the next one of this name. Nothing happens if it is the next or if there is none.
APPROACH = f"""([name, backwards]) => {{
  const reached = ({REACHED})();
  if (backwards) reached.reverse();
  const start = reached.indexOf(document.activeElement) + 1;
  if (!start && document.activeElement !== document.body) return;
  const order = [...reached.slice(start), ...reached.slice(0, start)];
  const target = order.findIndex((each) => ({NAMED})(each).startsWith(name));
  if (target > 0) order[target - 1].focus();
}}"""


def reached_names(page: Page) -> list[str]:
    """Return the names of all elements that Tab should reach, in order."""
    names: list[str] = page.evaluate(f"() => ({REACHED})().map({NAMED})")
    return names


def tabbed(page: Page, key: str = "Tab") -> str:
    """Press Tab and return the name of the focused element, whose focus must be visible; "" at the end of the page."""
    page.keyboard.press(key)
    name, shows = page.evaluate(FOCUSED)
    assert shows, f"{name} does not show its focus"
    return str(name)


def tab_to(page: Page, name: str, key: str = "Tab") -> None:
    """Go to the element of this name by Tab, wrapping around at the end of the page."""
    passed = [tabbed(page, key)]
    while not passed[-1].startswith(name):
        assert len(passed) < MOST_TABS and passed.count("") < 3, f"{name} is not reached by {key}: {passed}"
        page.evaluate(APPROACH, [name, key != "Tab"])
        passed.append(tabbed(page, key))


def press(page: Page, name: str, key: str = "Enter") -> None:
    tab_to(page, name)
    page.keyboard.press(key)


def follow(page: Page, name: str) -> None:
    """Activate a link by the keyboard and wait for the next page."""
    tab_to(page, name)
    with page.expect_navigation():
        page.keyboard.press("Enter")


def write(page: Page, name: str, text: str) -> None:
    tab_to(page, name)
    page.keyboard.press("Control+a")
    page.keyboard.type(text)
