"""A page used by the keyboard alone: Tab, arrows, Enter, Space and typing, never a pointer or a call of focus()."""

from playwright.sync_api import Page

MOST_TABS = 120
# The accessible name of the focused element, and whether its focus is visible.
FOCUSED = """() => {
  const element = document.activeElement;
  if (element === document.body) return ["", true];
  const text = document.getElementById(element.getAttribute("aria-labelledby"))?.innerText;
  const label = element.getAttribute("aria-label") || text || element.labels?.[0]?.innerText;
  const around = [element, element.closest(".composer"), element.closest(".search"), element.closest("label")];
  const shows = around.some((candidate) => {
    if (!candidate) return false;
    const style = getComputedStyle(candidate);
    return (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none";
  });
  return [(label || element.innerText || "").replace(/\\s+/g, " ").trim(), shows];
}"""


def tabbed(page: Page, key: str = "Tab") -> str:
    """Press Tab and return the name of the focused element, whose focus must be visible; "" at the end of the page."""
    page.keyboard.press(key)
    name, shows = page.evaluate(FOCUSED)
    assert shows, f"{name} does not show its focus"
    return str(name)


def tab_to(page: Page, name: str, key: str = "Tab") -> None:
    """Press Tab until the element of this name has the focus, wrapping around at the end of the page."""
    passed: list[str] = []
    while len(passed) < MOST_TABS and passed.count("") < 3:
        passed.append(tabbed(page, key))
        if passed[-1].startswith(name):
            return
    raise AssertionError(f"{name} is not reached by {key}: {passed}")


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
