"""Pages checked at both widths, in light and in dark, with axe."""

import os
from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

from tests.functional.conftest import SIZES, shoot

# Each width and each scheme once; all four combinations for screenshots.
LOOKS = (
    [(size, scheme) for size in SIZES for scheme in ("light", "dark")]
    if os.environ.get("SCREENSHOTS")
    else [("desktop", "light"), ("phone", "dark")]
)

# Colour transitions are over once no animation runs; one that ends may start that of inheriting elements.
SETTLED = """async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  await document.fonts.ready;
  for (let still = 0; still < 3; ) {
    await frame();
    const moving = document.getAnimations();
    for (const each of moving) each.finish();
    still = moving.length ? 0 : still + 1;
  }
}"""

# Axe checks colours on one visible text element of each appearance, on any page: the result is the same for
# equal ones, and checking hundreds takes most of axe's time.
ONE_OF_EACH_LOOK = """(known) => {
  const looks = new Map();
  const hashOf = (parts) => [...parts.join()].reduce((hash, each) => (Math.imul(hash, 31) + each.charCodeAt(0)) | 0, 7);
  const lookOf = (element) => {
    if (!element) return "";
    if (!looks.has(element)) {
      const style = getComputedStyle(element);
      const own = ["color", "backgroundColor", "backgroundImage", "opacity", "position", "textDecorationLine"];
      looks.set(element, hashOf([...own.map((name) => style[name]), lookOf(element.parentElement)]));
    }
    return looks.get(element);
  };
  const speaks = (element) => element.matches("input, select, textarea")
    || [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  const first = new Set(known);
  for (const element of document.body.querySelectorAll("*")) {
    element.removeAttribute("data-first-of-its-look");
    if (!speaks(element) || !element.checkVisibility()) continue;
    const { fontSize, fontWeight } = getComputedStyle(element);
    const look = hashOf([element.localName, fontSize, fontWeight, lookOf(element)]);
    if (!first.has(look)) element.setAttribute("data-first-of-its-look", "");
    first.add(look);
  }
  axe.configure({ rules: [{ id: "color-contrast", selector: "[data-first-of-its-look]" }] });
  return [...first];
}"""
_known_looks: list[int] = []
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}


def faults(page: Page, part: str | None = None, **only: Any) -> list[str]:
    """Return the violations that axe finds, each with the page and the first element.

    ``part`` selects an element to check, by default the whole page, and ``only`` the rules.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    known = set(_known_looks)
    _known_looks[:] = page.evaluate(ONE_OF_EACH_LOOK, _known_looks)
    if only == COLOURS and known.issuperset(_known_looks):
        return []
    # Passes are left out, since they are many, and style sheets are not preloaded, which would send more requests.
    options = {"resultTypes": ["violations"], "preload": False, **only}
    run = "([part, options]) => axe.run(part ?? document, options).then((result) => result.violations)"
    violations: list[Any] = page.evaluate(run, [part, options])
    return [
        f"{page.url} {fault['id']}: {fault['nodes'][0]['html'][:200]} "
        f"{fault['nodes'][0].get('failureSummary', '')}"
        for fault in violations
    ]


def look(page: Page, name: str, part: str | None = None) -> None:
    """Check the page in each look: axe, and that it is not too wide. Take screenshots, and restore its width.

    After the first look, axe checks the colours alone; what only a phone shows of whole pages is in test_every_page.
    """
    before, found = page.viewport_size, list[str]()
    assert before is not None
    for size, scheme in LOOKS:
        width, height = SIZES[size]
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        page.evaluate(SETTLED)
        found += faults(page, part, **({} if (size, scheme) == LOOKS[0] else COLOURS))
        shoot(page, f"{name}-{size}-{scheme}")
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append(f"{name} is too wide on a {size}")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(before)
    assert not found, "\n".join(found)
