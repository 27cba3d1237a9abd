"""Says whether every file that names refdesk's version names the same: `python -m tests.packaging.versions 1.2.3`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent


def list_versions() -> dict[str, str]:
    """Return the version that each file names, by the file."""
    manifest = json.loads((REPOSITORY / "deploy/mcpb/manifest.json").read_text())
    bundle = (REPOSITORY / "deploy/mcpb/pyproject.toml").read_text()
    server = json.loads((REPOSITORY / "server.json").read_text())
    chart = (REPOSITORY / "deploy/helm/refdesk/Chart.yaml").read_text()
    return {
        "src/refdesk/__init__.py": _find(r'__version__ = "(.+)"', (REPOSITORY / "src/refdesk/__init__.py").read_text()),
        "deploy/mcpb/manifest.json": manifest["version"],
        "deploy/mcpb/pyproject.toml": _find(r'^version = "(.+)"', bundle),
        "deploy/mcpb/pyproject.toml, its dependency": _find(r"refdesk==([^\"]+)", bundle),
        "server.json": server["version"],
        "server.json, its package": server["packages"][0]["version"],
        "deploy/helm/refdesk/Chart.yaml": _find(r'^appVersion: "(.+)"', chart),
    }


def _find(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else "none"


def main() -> None:
    """Exit with 1 where a file names another version than the one given."""
    wanted = sys.argv[1]
    others = {file: version for file, version in list_versions().items() if version != wanted}
    sys.exit("\n".join(f"{file} says {version}, not {wanted}" for file, version in others.items()) or 0)


if __name__ == "__main__":
    main()
