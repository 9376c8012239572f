// Another chat of the workspace is opened in the page that is there: the conversation alone is fetched, while scripts,
// sidebar and panel stay. Whatever goes wrong is left to the browser, which then opens the page as any other.

const OPENS = "#chat-list .chat-row > a:not(.chat-row__match), [data-new-chat]";
const address = () => location.pathname + location.search;
let shown = address();
let request = null;

async function open(url, { isNew }) {
  request?.abort();
  const { signal } = (request = new AbortController());
  const headers = { "HX-Request": "true", "HX-Target": "main" };
  let html;
  try {
    const answer = await fetch(url, { headers, signal, cache: "no-store" }); // it is no page for the browser to keep
    if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
    html = await answer.text();
  } catch {
    if (signal.aborted) return;
    if (isNew) location.assign(url);
    else location.reload();
    return;
  }
  if (signal.aborted) return;
  // What the conversation that is left still waits for is shown nowhere, as after leaving a page.
  document.getElementById("conversation").addEventListener("htmx:beforeSwap", (event) => event.preventDefault());
  if (isNew) {
    history.replaceState(null, ""); // of a chat begun here htmx would make a reload
    history.pushState(null, "", url);
  }
  shown = address();
  htmx.swap("#main", html, { swapStyle: "innerHTML" });
  for (const link of document.querySelectorAll("#chat-list .chat-row > a")) {
    if (link.pathname === location.pathname) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.getElementById("announce").textContent = document.title;
  document.dispatchEvent(new CustomEvent("memoryhub:chat-opened"));
}

document.addEventListener("click", (event) => {
  const link = event.target.closest(OPENS);
  const isPlain = !(event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
  if (!link || !isPlain || event.defaultPrevented) return;
  event.preventDefault();
  open(link.href, { isNew: true });
});

// Back and forward. An entry that htmx wrote it restores itself, by a reload; an address that differs in its hash alone
// is a place in the same chat.
addEventListener("popstate", ({ state }) => {
  if (!state?.htmx && address() !== shown) open(location.href, { isNew: false });
});
document.addEventListener("htmx:pushedIntoHistory", () => (shown = address()));
