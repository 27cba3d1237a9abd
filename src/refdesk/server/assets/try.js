"use strict";

// Where the server is: a proxy may show it under a path.
const root = new URL("..", document.currentScript.src).pathname.slice(0, -1);

/** Returns what `fetch` takes: arguments named in the path go there, the others into the body or the query. */
function request(method, path, text) {
  const given = JSON.parse(text);
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
  const address = root + path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(given[name] ?? ""));
  const rest = Object.fromEntries(Object.entries(given).filter(([name]) => !inPath.includes(name)));
  const key = document.querySelector("#key")?.value.trim();
  const headers = key ? { authorization: `Bearer ${key}` } : {};
  if (method !== "POST") {
    const query = new URLSearchParams(rest).toString();
    return [query ? `${address}?${query}` : address, { method, headers }];
  }
  // Without arguments in the path the text goes as it is, so that a mistake in it is answered and not mended.
  const body = inPath.length ? JSON.stringify(rest) : text;
  return [address, { method, headers: { ...headers, "content-type": "application/json" }, body }];
}

/** Sends the form's arguments to its route and shows the answer below it. */
async function send(form) {
  const { method, path } = form.dataset;
  const field = form.querySelector("textarea");
  const took = form.querySelector(".took");
  const shown = form.querySelector(".answer");
  const button = form.querySelector("button");
  button.disabled = true;
  const start = performance.now();
  try {
    const response = await fetch(...request(method, path, field?.value.trim() || "{}"));
    const text = await response.text();
    const milliseconds = Math.round(performance.now() - start);
    took.textContent = `${response.status} in ${milliseconds} ms`;
    took.classList.toggle("bad", !response.ok);
    shown.querySelector("code").textContent = JSON.stringify(JSON.parse(text), null, 2);
    shown.hidden = false;
  } catch (error) {
    took.textContent = `No answer: ${error.message}`;
    took.classList.add("bad");
  } finally {
    button.disabled = false;
  }
}

for (const form of document.querySelectorAll("form.try")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form);
  });
}
