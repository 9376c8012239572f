// Shows one page where the server cannot be reached, and notifications. It keeps that page and its files, which are the
// same for everybody, and nothing else: no chat, no memory, no answer of the server ever goes into the cache.

const CACHE = "offline-1";
const PAGE = "/offline/";

async function keep() {
  const cache = await caches.open(CACHE);
  const page = await fetch(PAGE, { credentials: "omit", cache: "no-cache" });
  const text = await page.clone().text();
  const files = [...text.matchAll(/(?:href|src)="([^"?#]+\.(?:css|js))"/g)].map((match) => match[1]);
  await cache.addAll(files);
  await cache.put(PAGE, page);
}

addEventListener("install", (event) => event.waitUntil(keep().then(() => skipWaiting())));

addEventListener("activate", (event) => {
  const older = async () => {
    for (const name of await caches.keys()) if (name !== CACHE) await caches.delete(name);
    await registration.navigationPreload?.enable();
    await clients.claim();
  };
  event.waitUntil(older());
});

async function navigate(event) {
  try {
    return (await event.preloadResponse) ?? (await fetch(event.request));
  } catch {
    return (await caches.match(PAGE)) ?? Response.error();
  }
}

// The files of that page come from the cache only where the network has none.
const file = async (request) => {
  try {
    return await fetch(request);
  } catch {
    return (await caches.match(request)) ?? Response.error();
  }
};

addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.mode === "navigate") event.respondWith(navigate(event));
  else if (!navigator.onLine && ["style", "script"].includes(request.destination)) event.respondWith(file(request));
});

addEventListener("notificationclick", (event) => {
  event.notification.close();
  const { url } = event.notification.data;
  const back = async () => {
    const open = await clients.matchAll({ type: "window" });
    const there = open.find((each) => new URL(each.url).pathname === url);
    return there ? there.focus() : clients.openWindow(url);
  };
  event.waitUntil(back());
});
