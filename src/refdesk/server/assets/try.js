"use strict";

// Where the server is: a proxy may show it under a path.
const root = new URL("..", document.currentScript.src).pathname.slice(0, -1);

/** Returns what `fetch` takes: arguments named in the path go there, the others into the body or the query. */
function request(method, path, text) {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
  const key = document.querySelector("#key")?.value.trim();
  const headers = key ? { authorization: `Bearer ${key}` } : {};
  const json = { ...headers, "content-type": "application/json" };
  // Without arguments in the path the text goes as it is, so that a mistake in it is answered and not mended.
  if (method === "POST" && !inPath.length) return [root + path, { method, headers: json, body: text }];
  const given = JSON.parse(text);
  const address = root + path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(given[name] ?? ""));
  const rest = Object.fromEntries(Object.entries(given).filter(([name]) => !inPath.includes(name)));
  if (method === "POST") return [address, { method, headers: json, body: JSON.stringify(rest) }];
  const query = new URLSearchParams(rest).toString();
  return [query ? `${address}?${query}` : address, { method, headers }];
}

/** Returns JSON as people read it, and any other text as it is. */
function spread(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** Sends the form's arguments to its route and shows the answer below it. */
async function send(form) {
  const { method, path } = form.dataset;
  const field = form.querySelector("textarea");
  const took = form.querySelector(".took");
  const shown = form.querySelector(".answer");
  // Not disabled: then the button would lose the focus, and who uses the keyboard their place.
  if (form.ariaBusy === "true") return;
  form.ariaBusy = "true";
  shown.hidden = true;
  const start = performance.now();
  try {
    const response = await fetch(...request(method, path, field?.value.trim() || "{}"));
    const text = await response.text();
    const milliseconds = Math.round(performance.now() - start);
    took.textContent = `${response.status} in ${milliseconds} ms`;
    took.classList.toggle("bad", !response.ok);
    shown.querySelector("code").textContent = spread(text);
    shown.hidden = false;
  } catch (error) {
    took.textContent = `No answer: ${error.message}`;
    took.classList.add("bad");
  } finally {
    form.ariaBusy = "false";
  }
}

for (const form of document.querySelectorAll("form.try")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form);
  });
}
