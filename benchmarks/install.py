"""How large the base install is, by package; and, with `--platforms`, what is installed where from wheels alone.

    python -m benchmarks.install [--with REQUIREMENT] [--python-version 3.13] [--platforms]

The wheel and everything that it needs, as `requirements/run.txt` pins it, are installed into a fresh environment and
compiled, as pip does it. For platforms nothing is installed: uv says what it would install where nothing may be built.

`--with` says what else the install has to satisfy, such as `onnxruntime<1.28`. With `--python-version` it is what that
version of Python on Linux is given, which need not be there; then nothing is compiled.

Exit status 1 when what is installed, before it is compiled, takes more than `LIMIT` megabytes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from importlib.metadata import distributions
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
UV = Path(sys.executable).parent / "uv"
RUN = REPOSITORY / "requirements" / "run.txt"
LIMIT = 212
"""Megabytes that the base install may take, before it is compiled."""

NEWEST = "3.13"
"""The version of Python that platforms are asked about unless one is named."""

SHOWN = 12
COMPILED = "(compiled by pip)"
OTHER = "(what no package lists)"

PLATFORMS = {
    "Linux x86-64": "x86_64-manylinux_2_28",
    "Linux ARM": "aarch64-manylinux_2_28",
    "Alpine x86-64": "x86_64-unknown-linux-musl",
    "Alpine ARM": "aarch64-unknown-linux-musl",
    "macOS Apple silicon": "aarch64-apple-darwin",
    "macOS Intel": "x86_64-apple-darwin",
    "Windows x86-64": "x86_64-pc-windows-msvc",
    "Windows ARM": "aarch64-pc-windows-msvc",
}


def install(folder: Path, more: str | None = None) -> Path:
    """Install the wheel of this repository into a fresh environment; return its folder of packages."""
    python = folder / "bin" / "python"
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, folder], check=True)
    options = ["--quiet", "--compile-bytecode", "--link-mode", "copy", "--python", python]
    subprocess.run([UV, "pip", "install", *options, "--require-hashes", "-r", RUN], check=True)
    subprocess.run([UV, "pip", "install", *options, "--no-deps", REPOSITORY], check=True)
    if more:
        subprocess.run([UV, "pip", "install", *options, more], check=True)
    return next((folder / "lib").glob("python*/site-packages"))


def install_for(version: str, folder: Path, more: str | None = None) -> Path:
    """Put what another version of Python is given on Linux into a folder, as wheels alone; return that folder."""
    linux = ["--python-platform", PLATFORMS["Linux x86-64"], "--python-version", version, "--only-binary", ":all:"]
    options = ["--quiet", "--link-mode", "copy", "--target", folder]
    subprocess.run([UV, "pip", "install", *options, *linux, "--require-hashes", "-r", RUN], check=True)
    subprocess.run([UV, "pip", "install", *options, "--no-deps", REPOSITORY], check=True)
    if more:
        subprocess.run([UV, "pip", "install", *options, *linux, more], check=True)
    return folder


def measure(packages: Path) -> Counter[str]:
    """Return the bytes of each distribution in a folder, of what was compiled, and of what no distribution lists."""
    sizes: Counter[str] = Counter()
    for found in distributions(path=[str(packages)]):
        files = [packages / str(file) for file in found.files or ()]
        sizes[found.name] += sum(path.stat().st_size for path in files if path.is_file() and path.suffix != ".pyc")
    everything = [path for path in packages.rglob("*") if path.is_file()]
    sizes[COMPILED] = sum(path.stat().st_size for path in everything if path.suffix == ".pyc")
    sizes[OTHER] = sum(path.stat().st_size for path in everything) - sizes.total()
    return sizes


def sum_installed(sizes: Counter[str]) -> float:
    """Return the megabytes that were installed, without what was compiled of them."""
    return (sizes.total() - sizes[COMPILED]) / 1e6


def resolve(platform: str, version: str) -> dict[str, str] | str:
    """Return what is installed on a platform where only wheels will do, by package; or why nothing can be."""
    options = ["--quiet", "--no-header", "--no-annotate", "--only-binary", ":all:", "--python-platform", platform]
    command = [UV, "pip", "compile", *options, "--python-version", version, REPOSITORY / "pyproject.toml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return " ".join(done.stderr.split()).partition("cause: ")[2].partition(" and refdesk depends")[0]
    return dict(line.split("==", 1) for line in done.stdout.splitlines() if "==" in line)


def tell(found: dict[str, str] | str, newest: dict[str, str]) -> str:
    """Return whether a platform has a wheel for everything, and which packages are older there than elsewhere."""
    if isinstance(found, str):
        return f"cannot be installed: {found}"
    older = [f"{name} {version}" for name, version in found.items() if newest.get(name, version) != version]
    return f"installs, with {', '.join(older)}" if older else "installs"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--platforms", action="store_true", help="ask which packages have no wheel where")
    parser.add_argument("--python-version", metavar="VERSION", help="of which Python; the one that runs this, if none")
    parser.add_argument("--with", dest="more", metavar="REQUIREMENT", help="what else is to be satisfied")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment, version = Path(folder) / "environment", asked.python_version
        sizes = measure(install_for(version, environment, asked.more) if version else install(environment, asked.more))
    for name, size in sizes.most_common(SHOWN):
        print(f"{size / 1e6:8.1f} MB  {name}")
    installed = sum_installed(sizes)
    print(f"{installed:8.1f} MB  installed, {len(sizes) - 2} packages (limit {LIMIT} MB)")
    if not version:
        print(f"{sizes.total() / 1e6:8.1f} MB  in all, once compiled")
    found = {name: resolve(each, version or NEWEST) for name, each in PLATFORMS.items()} if asked.platforms else {}
    newest = found.get("Linux x86-64", {})
    for name, each in found.items():
        print(f"{name:<22}{tell(each, newest if isinstance(newest, dict) else {})}")
    sys.exit(installed > LIMIT)


if __name__ == "__main__":
    main()
