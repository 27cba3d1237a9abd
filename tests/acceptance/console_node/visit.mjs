// Opens pages in a real browser and says what is wrong with each: node visit.mjs BROWSER, a plan as JSON on stdin.
//
// The plan: {"pages": [url, ...], "looks": [[scheme, width], ...], "keys": url or null, "shots": folder or null,
//   "inTurns": whether each page has only one of the looks, "names": of the pictures, one for each page,
//   "key": of who looks, or null, "flow": {"script": bool, "steps": [[what, ...], ...]} or null}
// The answer, as JSON: {"visits": [{url, scheme, width, violations, errors, bytes, wide}, ...], "keys": {...},
//   "flow": {"said": [what each step that reads has read, ...], "errors": [...]}}
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const plan = JSON.parse(readFileSync(0, "utf8"));
const browser = await puppeteer.launch({
  executablePath: process.argv[2],
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  protocolTimeout: 600000,
});

const visits = [];

// Without scripts of the page's own: those of the driver need a browser that runs some.
async function dropScripts(page) {
  await page.setRequestInterception(true);
  page.on("request", (request) => {
    if (request.resourceType() === "script") request.respond({ status: 200, contentType: "text/javascript", body: "" });
    else request.continue();
  });
}

async function open(url, scheme, width, bare = false) {
  // Cookies of its own: to set one anew deletes it first, and whatever another page asks for in between comes without.
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  const errors = [];
  const bodies = [];
  if (bare) await dropScripts(page);
  page.setDefaultTimeout(120000);
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("dialog", (dialog) => { errors.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("requestfailed", (request) => {
    // The stream of news ends with its page.
    if (!request.url().endsWith("/console/events")) errors.push(`failed: ${request.url()}`);
  });
  page.on("response", (response) => {
    if (url !== "about:blank" && new URL(response.url()).origin !== new URL(url).origin) errors.push(`elsewhere: ${response.url()}`);
    // A stream of news has no end to wait for.
    if (!response.url().endsWith("/console/events")) bodies.push(response.buffer().then((body) => body.length, () => 0));
  });
  if (plan.key) await page.setCookie({ name: "refdesk_key", value: plan.key, url });
  await page.setViewport({ width, height: plan.height ?? 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto(url, { waitUntil: "load" });
  const count = async () => (await Promise.all(bodies)).reduce((sum, length) => sum + length, 0);
  return { page, errors, count, close: () => context.close() };
}

async function visit(url, scheme, width) {
  const { page, errors, count, close } = await open(url, scheme, width);
  if (plan.shots) {
    const name = `${plan.shots}/${plan.names[plan.pages.indexOf(url)]}-${scheme}.webp`;
    await page.screenshot({ path: name, type: "webp", quality: 60 });
  }
  const found = await judge(page);
  const violations = found.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ").slice(0, 300)}`);
  const bytes = await count();
  const wide = [];
  // Whatever can be opened, once as it comes and once opened, on windows as narrow as any.
  for (const narrow of new Set([width, 360, 320])) {
    await page.setViewport({ width: narrow, height: plan.height ?? 900 });
    for (const isOpen of [false, true]) {
      await page.evaluate((open) => document.querySelectorAll("details").forEach((each) => { each.open = open; }), isOpen);
      const found = await page.evaluate(findWidest);
      if (found) wide.push(`wider than ${narrow}: ${found}`);
    }
  }
  await close();
  return { url, scheme, width, violations, errors, bytes, wide };
}

// The first element that makes the page scroll sideways, if one does.
function findWidest() {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return null;
  const scrolls = (each) => each !== document.body && (getComputedStyle(each).overflowX !== "visible" || scrolls(each.parentElement));
  const beyond = [...document.body.querySelectorAll("*")]
    .filter((each) => each.getBoundingClientRect().right > width + 1 && !scrolls(each.parentElement));
  const last = beyond.find((each) => ![...each.children].some((child) => beyond.includes(child)));
  return (last ?? document.body).outerHTML.slice(0, 200);
}

async function judge(page) {
  // Said by the debugger, whom no policy of the page binds.
  const session = await page.createCDPSession();
  await session.send("Runtime.evaluate", { expression: axe });
  const said = await session.send("Runtime.evaluate", {
    expression: "axe.run(document).then(found => found.violations)",
    awaitPromise: true,
    returnByValue: true,
  });
  return said.result.value;
}

async function tryKeys(url) {
  const { page, errors, close } = await open(url, "light", 1280);
  const active = () => page.evaluate(() => document.activeElement.id || document.activeElement.textContent.trim());
  const said = {};
  await page.keyboard.press("j");
  said.first = await active();
  await page.keyboard.press("j");
  said.second = await active();
  await page.keyboard.press("k");
  said.back = await active();
  await page.keyboard.press("/");
  said.search = await active();
  await page.keyboard.type("j?");
  said.typed = await page.evaluate(() => document.getElementById("q").value);
  await page.keyboard.press("Escape");
  await page.keyboard.press("?");
  said.dialog = await page.evaluate(() => document.getElementById("keys").open);
  await page.keyboard.press("Escape");
  said.closed = await page.evaluate(() => !document.getElementById("keys").open);
  await page.keyboard.press("j");
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  said.opened = await page.evaluate(() => document.querySelector("h1").textContent);
  said.errors = errors;
  await close();
  return said;
}

const steps = {
  open: (page, url) => page.goto(url, { waitUntil: "load" }),
  // The selector is of a link or a button that leads to another page.
  follow: (page, selector) => Promise.all([page.waitForNavigation(), page.click(selector)]),
  click: (page, selector) => page.click(selector),
  write: async (page, selector, text) => {
    await page.$eval(selector, (field) => { field.value = ""; });
    await page.type(selector, text);
  },
  wait: (page, selector) => page.waitForSelector(selector),
  // Whoever else writes; not from the page.
  post: (page, url, body, key) => {
    const headers = { "content-type": "application/json", ...(key && { authorization: `Bearer ${key}` }) };
    return fetch(url, { method: "POST", headers, body });
  },
  keep: (page, name, value, url) => page.setCookie({ name, value, url, httpOnly: true, sameSite: "Strict" }),
  check: async (page) => (await judge(page)).map(({ id }) => id).join(" "),
  read: (page, selector) => page.$$eval(selector, (found) => found.map((each) => each.innerText).join("\n")),
  press: (page, key) => page.keyboard.press(key),
  focus: (page, selector) => page.focus(selector),
  focused: (page) => page.evaluate(() => document.activeElement.innerText),
  // The words that take more than one line.
  broken: (page, selector) =>
    page.$$eval(selector, (found) => found.filter((each) => {
      const range = document.createRange();
      range.selectNodeContents(each);
      return !/\s/.test(each.innerText) && range.getClientRects().length > 1;
    }).map((each) => each.innerText).join(" ")),
  where: (page) => page.evaluate(() => location.pathname + location.search),
};

async function walk(flow) {
  const { page, errors, close } = await open("about:blank", "light", 1280, !flow.script);
  const said = [];
  for (const [what, ...rest] of flow.steps) {
    const answer = await steps[what](page, ...rest);
    if (["read", "where", "check", "broken", "focused"].includes(what)) said.push(answer);
  }
  await close();
  return { said, errors };
}

// A few at a time: much of a visit is waiting.
const pages = plan.pages ?? [];
const looks = (place) => plan.inTurns ? [plan.looks[place % plan.looks.length]] : plan.looks;
const waiting = pages.flatMap((url, place) => looks(place).map(([scheme, width]) => [url, scheme, width]));
await Promise.all(Array.from({ length: plan.shots ? 1 : 3 }, async () => {
  while (waiting.length) visits.push(await visit(...waiting.shift()));
}));
const keys = plan.keys ? await tryKeys(plan.keys) : null;
const flow = plan.flow ? await walk(plan.flow) : null;
await browser.close();
process.stdout.write(JSON.stringify({ visits, keys, flow }));
