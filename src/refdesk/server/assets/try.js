"use strict";

/** Sends the form's arguments to its route and shows the answer below it. */
async function send(form) {
  const { method, path } = form.dataset;
  const field = form.querySelector("textarea");
  const took = form.querySelector(".took");
  const shown = form.querySelector(".answer");
  const button = form.querySelector("button");
  const options = { method };
  let address = path;
  if (field && method === "POST") {
    options.headers = { "content-type": "application/json" };
    options.body = field.value;
  } else if (field) {
    address += "?" + new URLSearchParams(JSON.parse(field.value || "{}"));
  }
  button.disabled = true;
  const start = performance.now();
  try {
    const response = await fetch(address, options);
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
