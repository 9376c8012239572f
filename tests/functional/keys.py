"""A page by keys alone: Tab, arrows, Enter, Space and typing. Nothing here points at anything or puts the focus."""

from __future__ import annotations

from playwright.sync_api import Page

MOST_TABS = 120
# What is read out first of what has the focus: its own label or words, or those of the label beside it.
NAME = """() => {
  const element = document.activeElement;
  const label = element.getAttribute("aria-label") || element.labels?.[0]?.innerText;
  return (label || element.innerText || element.name || "").trim();
}"""
RING = """() => {
  const element = document.activeElement;
  const around = [element, element.closest(".composer"), element.closest(".search"), element.closest("label")];
  return around.some((candidate) => {
    if (!candidate) return false;
    const style = getComputedStyle(candidate);
    return (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none";
  });
}"""


def tabbed(page: Page, key: str = "Tab") -> str:
    """The name of what the next Tab reaches, which shows that it has the focus; none at the end of the page."""
    page.keyboard.press(key)
    if page.evaluate("document.activeElement === document.body"):
        return ""
    name = str(page.evaluate(NAME))
    assert page.evaluate(RING), f"{name} does not show its focus"
    return name


def tab_to(page: Page, name: str, key: str = "Tab") -> None:
    """Press Tab until what is called so has the focus: after the end of the page, from its beginning."""
    passed = []
    for _ in range(MOST_TABS):
        passed.append(tabbed(page, key))
        if passed[-1].startswith(name):
            return
    raise AssertionError(f"{name} is not reached by {key}: {passed}")


def press(page: Page, name: str, key: str = "Enter") -> None:
    tab_to(page, name)
    page.keyboard.press(key)


def write(page: Page, name: str, text: str) -> None:
    tab_to(page, name)
    page.keyboard.press("Control+a")
    page.keyboard.type(text)
