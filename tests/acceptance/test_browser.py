"""Pages of other origins in a real browser: one that is allowed speaks MCP and REST, one that is not gets nothing."""

from __future__ import annotations

import html
import json
import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.acceptance.browser import open_page
from tests.acceptance.processes import TOOLS, start
from tests.test_cli import refdesk

SCRIPT = """
const said = {};
async function ask(method, params, more = {}, id = 1) {
  const headers = {"content-type": "application/json", "accept": "application/json, text/event-stream",
                   "authorization": "Bearer KEY", ...more};
  const body = JSON.stringify({jsonrpc: "2.0", ...(id ? {id} : {}), method, params});
  return fetch("SERVER/mcp", {method: "POST", headers, body});
}
async function read(response) {
  const text = await response.text();
  return JSON.parse(text.startsWith("{") ? text : text.split("data: ")[1].split("\\n")[0]);
}
async function main() {
  const client = {protocolVersion: "2025-11-25", capabilities: {}, clientInfo: {name: "page", version: "1"}};
  const opened = await ask("initialize", client);
  const session = {"mcp-session-id": opened.headers.get("mcp-session-id"), "mcp-protocol-version": "2025-11-25"};
  said.server = (await read(opened)).result.serverInfo.name;
  await ask("notifications/initialized", {}, session, null);
  said.tools = (await read(await ask("tools/list", {}, session, 2))).result.tools.map(tool => tool.name);
  const answer = await fetch("SERVER/azure-updates/search", {
    method: "POST", headers: {"content-type": "application/json", "authorization": "Bearer KEY"},
    body: JSON.stringify({query: "storage"})});
  said.total = (await answer.json()).total;
  const refused = await fetch("SERVER/knowledge/search", {
    method: "POST", headers: {"content-type": "application/json"}, body: "{}"});
  said.refused = [refused.status, refused.headers.get("www-authenticate") !== null];
  said.closed = (await fetch("SERVER/mcp", {method: "DELETE", headers: {...session, authorization: "Bearer KEY"}})).ok;
}
main().catch(error => said.failure = error.name).finally(() =>
  document.querySelector("pre").textContent = JSON.stringify(said));
"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        return


@contextmanager
def host_page(folder: Path) -> Generator[str]:
    """Serve a folder on an origin of its own."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def let_page_call(tmp_path: Path, *, allowed: bool) -> dict[str, Any]:
    home, pages = tmp_path / "home", tmp_path / "pages"
    pages.mkdir()
    made = refdesk(home, ["keys", "create", "--agent", "page", "--scope", "updates:read", "--json"])
    with host_page(pages) as origin:
        settings = {
            "REFDESK_EMBEDDER": "hashing",
            "REFDESK_ALLOWED_ORIGINS": origin if allowed else "https://a.example",
        }
        with start(["-m", "refdesk", "serve", "--port", "0"], home, **settings) as server:
            url = server.read_log("listening")["url"]
            script = SCRIPT.replace("SERVER", url).replace("KEY", json.loads(made.stdout)["key"])
            (pages / "index.html").write_text(f"<!doctype html><pre></pre><script>{script}</script>")
            shown = re.search("<pre>(.*?)</pre>", open_page(f"{origin}/index.html", tmp_path / "profile"), re.DOTALL)
    assert shown is not None
    return json.loads(html.unescape(shown[1]))


def test_a_page_of_an_allowed_origin_speaks_mcp_and_rest(tmp_path: Path) -> None:
    said = let_page_call(tmp_path, allowed=True)
    readable = [tool for tool in TOOLS if tool in ("search_azure_updates", "search_everything")]
    assert said == {"server": "refdesk", "tools": readable, "total": 0, "refused": [401, True], "closed": True}


def test_a_page_of_another_origin_gets_nothing(tmp_path: Path) -> None:
    assert let_page_call(tmp_path, allowed=False) == {"failure": "TypeError"}
