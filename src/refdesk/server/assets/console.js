// Keys and news for those who like them; every page works without.
"use strict";

// Where the server is: a proxy may show it under a path.
const root = new URL("..", document.currentScript.src).pathname;
const field = document.getElementById("q");
const dialog = document.getElementById("keys");
const main = document.getElementById("main");
const news = document.getElementById("news");

function step(by) {
  const results = [...document.querySelectorAll("a.result")];
  if (!results.length) return;
  const here = results.indexOf(document.activeElement);
  const next = here < 0 ? (by > 0 ? 0 : results.length - 1) : Math.min(Math.max(here + by, 0), results.length - 1);
  results[next].focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest("input, textarea, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (dialog.open) return;
  if (event.key === "/") field.select();
  else if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "?") dialog.showModal();
  else return;
  event.preventDefault();
});

// What was just done is said once: not again when the page is loaded anew.
const address = new URL(location.href);
if (address.searchParams.has("did")) {
  address.searchParams.delete("did");
  address.searchParams.delete("undo");
  history.replaceState(null, "", address);
}

// A page that is looked at is told of changes, asks for itself again, and shows what is otherwise.
const PAUSE = 3000;
const LATER = 15000;
let stream = null;
let waiting = null;
let shownAt = 0;

function say(element) {
  const copy = element.cloneNode(true);
  copy.querySelectorAll("time, .done").forEach((each) => each.remove());
  copy.querySelectorAll("details").forEach((each) => each.removeAttribute("open"));
  return copy.innerHTML;
}

async function renew() {
  waiting = null;
  if (document.hidden || dialog.open || main.contains(document.activeElement.closest("input, textarea, select"))) return;
  shownAt = Date.now();
  const answer = await fetch(location.href);
  // Who has signed out, perhaps in another tab, is not shown what they may not see.
  if (answer.redirected && new URL(answer.url).pathname === `${root}console/sign-in`) location.reload();
  if (!answer.ok || answer.redirected) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
  if (!fresh || say(fresh) === say(main)) return;
  const focused = main.contains(document.activeElement) && document.activeElement.getAttribute("href");
  const open = [...main.querySelectorAll("details")].map((each) => each.open);
  const done = main.querySelector(".done");
  main.replaceChildren(...(done ? [done] : []), ...fresh.childNodes);
  main.querySelectorAll("details").forEach((each, place) => { if (place in open) each.open = open[place]; });
  if (focused) main.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus();
  news.textContent = "The page shows what has changed.";
}

function hear() {
  waiting ??= setTimeout(() => renew().catch(() => {}), Math.max(200, shownAt + PAUSE - Date.now()));
}

function rest() {
  stream?.close();
  stream = null;
}

function follow() {
  if (document.hidden) {
    rest();
  } else if (!stream) {
    if (shownAt) hear();
    shownAt = Date.now();
    const opened = new EventSource(`${root}console/events`);
    opened.onmessage = hear;
    // A browser tries again by itself where nothing answers, but gives up where a proxy does instead.
    opened.onerror = () => {
      if (opened !== stream || opened.readyState !== EventSource.CLOSED) return;
      stream = null;
      setTimeout(follow, LATER);
    };
    stream = opened;
  }
}

if ("live" in main.dataset && "EventSource" in window) {
  document.addEventListener("visibilitychange", follow);
  window.addEventListener("pagehide", rest);
  window.addEventListener("pageshow", follow);
  follow();
}
