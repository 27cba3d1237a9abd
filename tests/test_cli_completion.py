"""Completion in the shells that people have, by what each itself does with the script that it is given."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent

BASH = """
eval "$(refdesk completion bash)"
COMP_WORDS=({words}); COMP_CWORD={place}; _refdesk_completion refdesk; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ZSH = """
autoload -Uz compinit; compinit -D
eval "$(refdesk completion zsh)"
_describe() {{ local name=${{@[-1]}}; [[ $1 == -V ]] && name=$3; print -l -- ${{(P)name}}; }}
compadd() {{ local name=${{@[-1]}}; print -l -- ${{(P)name}}; }}
words=({words}); CURRENT=$(({place} + 1)); _refdesk_completion
"""
FISH = """
refdesk completion fish | source
complete --do-complete 'refdesk {last}'
"""


def run(shell: str, script: str) -> list[str]:
    found = shutil.which(shell)
    if found is None:
        reason = f"{shell} is not installed"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    plain = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "TERM": "dumb"}
    done = subprocess.run(
        [found, *plain, "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return [line.partition("\t")[0].partition(":")[0] for line in done.stdout.splitlines()]


@pytest.mark.parametrize(("shell", "script"), [("bash", BASH), ("zsh", ZSH), ("fish", FISH)])
@pytest.mark.parametrize(
    ("words", "proposed"),
    [
        ("refdesk knowledge wit", ["withdraw"]),
        ("refdesk search --toolset sk", ["skills"]),
    ],
)
def test_a_shell_completes_commands_options_and_values(
    shell: str, script: str, words: str, proposed: list[str]
) -> None:
    place, last = len(words.split()) - 1, words.partition(" ")[2]
    assert run(shell, script.format(words=words, place=place, last=last)) == proposed


def complete(line: str, word: str) -> list[str]:
    """Return what PowerShell's block is given for a line, whose last word is being typed."""
    variables = {"_REFDESK_COMPLETE": "powershell_complete", "COMP_WORDS": line, "COMP_CWORD": word}
    done = subprocess.run(
        [BIN / "refdesk"], env={**os.environ, **variables}, capture_output=True, text=True, timeout=60, check=True
    )
    return [line.split("\t")[1] for line in done.stdout.splitlines()]


def test_powershell_is_given_proposals_a_line_each() -> None:
    assert complete("refdesk kno", "kno") == ["knowledge"]
    assert complete("refdesk sync az", "az") == ["azure-updates"]
    assert {"withdraw", "restore", "edit"} <= set(complete("refdesk knowledge", ""))
    script = subprocess.run([BIN / "refdesk", "completion", "powershell"], capture_output=True, text=True, check=True)
    assert "Register-ArgumentCompleter -Native -CommandName refdesk" in script.stdout
