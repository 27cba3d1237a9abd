// Opens pages in a real browser and says what is wrong with each: node visit.mjs BROWSER, a plan as JSON on stdin.
//
// The plan: {"pages": [url, ...], "looks": [[scheme, width], ...], "keys": url or null, "shots": folder or null}
// The answer, as JSON: {"visits": [{url, scheme, width, violations, errors, bytes, wide}, ...], "keys": {...}}
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

async function open(url, scheme, width) {
  const page = await browser.newPage();
  const errors = [];
  const bodies = [];
  page.setDefaultTimeout(600000);
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("dialog", (dialog) => { errors.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("requestfailed", (request) => errors.push(`failed: ${request.url()}`));
  page.on("response", (response) => {
    if (new URL(response.url()).origin !== new URL(url).origin) errors.push(`elsewhere: ${response.url()}`);
    bodies.push(response.buffer().then((body) => body.length, () => 0));
  });
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto(url, { waitUntil: "load" });
  return { page, errors, count: async () => (await Promise.all(bodies)).reduce((sum, length) => sum + length, 0) };
}

async function visit(url, scheme, width) {
  const { page, errors, count } = await open(url, scheme, width);
  if (plan.shots) {
    await page.screenshot({ path: `${plan.shots}/${visits.length}-${scheme}-${width}.png` });
  }
  const found = await judge(page);
  const violations = found.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ").slice(0, 300)}`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
  const bytes = await count();
  await page.close();
  return { url, scheme, width, violations, errors, bytes, wide };
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
  const { page, errors } = await open(url, "light", 1280);
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
  await page.close();
  return said;
}

for (const url of plan.pages)
  for (const [scheme, width] of plan.looks) visits.push(await visit(url, scheme, width));
const keys = plan.keys ? await tryKeys(plan.keys) : null;
await browser.close();
process.stdout.write(JSON.stringify({ visits, keys }));
