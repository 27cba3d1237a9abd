"""The image, built from the Dockerfile as it is and run: who it is, what it holds, and that it serves.

Where no registry of images is reached, Debian's own packages stand for the base: its Python of the same version,
without what is compiled from source there. That takes buildah and mmdebstrap, as Debian has them, and root.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_sign_in import find_port
from tests.conftest import REPOSITORY
from tests.packaging.conftest import find_tool

pytestmark = pytest.mark.timeout(3600)

SECONDS = 1800
PACKAGES = "python3,python3-venv,python3-pip,ca-certificates"
MOST_MEGABYTES = 420
"""Of what the image adds to its base: the environment with every engine's driver, compiled."""


@dataclass(frozen=True)
class Builder:
    """Buildah, with storage of its own and without a daemon."""

    storage: Path

    def run(self, *arguments: str | Path) -> str:
        """Return what a command of buildah says."""
        where = ["--root", self.storage / "images", "--runroot", self.storage / "run", "--storage-driver", "vfs"]
        done = subprocess.run(
            ["buildah", *where, *arguments],
            env={**os.environ, "BUILDAH_ISOLATION": "chroot"},
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def make_base(self, name: str) -> None:
        """Make an image of this name from Debian's packages."""
        release = name.rpartition("-")[2]
        archive = self.storage / "base.tar"
        options = ["--quiet", "--variant=minbase", f"--include={PACKAGES}", "--skip=check/signed-by"]
        subprocess.run(["mmdebstrap", *options, release, archive], check=True, timeout=SECONDS)
        container = self.run("from", "scratch").strip()
        self.run("add", "--quiet", container, archive, "/")
        self.run("run", container, "--", "ln", "-s", "/usr/bin/python3", "/usr/local/bin/python")
        self.run("config", "--env", "PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", container)
        self.run("commit", "--quiet", "--rm", container, f"docker.io/library/{name}")

    def build(self) -> str:
        """Return the id of the image that the Dockerfile makes, of the base that there is."""
        certificates = ["--volume", "/etc/ssl/certs:/etc/ssl/certs:ro"] if Path("/etc/ssl/certs").is_dir() else []
        said = self.run("build", "--quiet", "--pull-never", "--format", "docker", *certificates, ".")
        return said.split()[-1]


@dataclass(frozen=True)
class Image:
    """A container of the image, whose commands run as its user."""

    builder: Builder
    id: str
    container: str

    def run(self, *command: str) -> str:
        return self.builder.run("run", self.container, "--", *command)

    def inspect(self) -> dict[str, Any]:
        return json.loads(self.builder.run("inspect", "--type", "image", self.id))["Docker"]["config"]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Generator[Image]:
    find_tool("buildah")
    missing = [name for name in ("buildah", "mmdebstrap") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"an image is built by root with buildah and mmdebstrap; missing: {', '.join(missing) or 'root'}")
    [base] = {line.split()[1] for line in read_dockerfile() if line.startswith("FROM")}
    builder = Builder(tmp_path_factory.mktemp("storage"))
    builder.make_base(base)
    id = builder.build()
    yield Image(builder, id, builder.run("from", "--pull-never", id).strip())
    builder.run("rm", "--all")
    shutil.rmtree(builder.storage)


def read_dockerfile() -> Sequence[str]:
    return (REPOSITORY / "Dockerfile").read_text().splitlines()


def test_the_image_runs_as_nobody_in_particular_and_keeps_its_data_alone(image: Image) -> None:
    assert "uid=10001 gid=10001" in image.run("id")
    assert image.inspect()["User"] == "10001:10001"
    written = image.run("sh", "-c", "for each in / /opt/refdesk /data; do test -w $each && echo $each; done; true")
    assert written.split() == ["/data"]


def test_the_image_holds_what_is_installed_and_nothing_of_the_repository(image: Image) -> None:
    assert image.run("sh", "-c", "ls -A / /data").count("Dockerfile") == 0
    assert image.run("sh", "-c", "ls /app /opt/build 2>/dev/null || true") == ""
    assert int(image.run("du", "-sm", "/opt/refdesk").split()[0]) <= MOST_MEGABYTES


def test_every_engine_has_its_driver(image: Image) -> None:
    image.run("python", "-c", "import psycopg, bullmq, redis, neo4j, google.genai, opentelemetry.sdk, tokenizers")


def test_the_image_stores_finds_and_answers_its_health_check(image: Image) -> None:
    assert re.match(r"refdesk, version \d", image.run("refdesk", "--version"))
    image.run("refdesk", "knowledge", "store", "--title", "Refund limit", "--body", "500 EUR")
    assert "Refund limit" in image.run("refdesk", "search", "--toolset", "knowledge", "refund")
    settings = image.inspect()
    assert (settings["Entrypoint"], settings["Cmd"]) == (["refdesk"], ["serve", "--host", "0.0.0.0"])
    assert serve_and_check(image, find_port(), settings["Healthcheck"]["Test"][1:]) == "healthy"


def serve_and_check(image: Image, port: int, check: Sequence[str]) -> str:
    """Serve with the image's own command on a port, run its health check against it, and end the server."""
    here = [part.replace("8350", str(port)) for part in check]
    script = (
        "import subprocess, sys, time\n"
        f"server = subprocess.Popen(['refdesk', 'serve', '--host', '0.0.0.0', '--port', '{port}'],"
        " stderr=subprocess.PIPE, text=True)\n"
        "for line in server.stderr:\n"
        "    if 'listening' in line: break\n"
        f"failed = subprocess.run({here!r}).returncode\n"
        "server.terminate(); server.communicate()\n"
        "print('failed' if failed else 'healthy')\n"
    )
    return image.run("python", "-c", script).strip()
