"""`refdesk completion`: prints the script that lets a shell complete commands, options and their values.

Click knows bash, zsh and fish; PowerShell is added here, through click's interface for further shells.
"""

from __future__ import annotations

from typing import ClassVar

import click
from click.shell_completion import (
    CompletionItem,
    ShellComplete,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

from refdesk import errors

VARIABLE = "_REFDESK_COMPLETE"
SHELLS = ("bash", "zsh", "fish", "powershell")

_POWERSHELL = """\
Register-ArgumentCompleter -Native -CommandName %(prog_name)s -ScriptBlock {
    param($word, $line, $position)
    $env:COMP_WORDS = $line.ToString()
    $env:COMP_CWORD = $word
    $env:%(complete_var)s = "powershell_complete"
    %(prog_name)s | ForEach-Object {
        $kind, $value, $help = $_ -split "`t", 3
        if (-not $help) { $help = $value }
        [System.Management.Automation.CompletionResult]::new($value, $value, "ParameterValue", $help)
    }
    $env:COMP_WORDS = $env:COMP_CWORD = $env:%(complete_var)s = $null
}
"""


class PowerShellComplete(ShellComplete):
    """PowerShell 5 and 7, on any system: one line for each proposal, with tabs between its parts."""

    name: ClassVar[str] = "powershell"
    source_template: ClassVar[str] = _POWERSHELL

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one to complete, and that word."""
        from refdesk.settings import read_variable

        words, word = split_arg_string(read_variable("COMP_WORDS") or ""), read_variable("COMP_CWORD") or ""
        return words[1:-1] if word and words[-1:] == [word] else words[1:], word

    def format_completion(self, item: CompletionItem) -> str:
        """Return a proposal as one line."""
        return f"{item.type}\t{item.value}\t{item.help or ''}".replace("\n", " ")


add_completion_class(PowerShellComplete)


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what lets SHELL complete refdesk's commands, options and their values.

    \b
    bash        eval "$(refdesk completion bash)"                      in ~/.bashrc
    zsh         eval "$(refdesk completion zsh)"                       in ~/.zshrc, after compinit
    fish        refdesk completion fish | source                       in ~/.config/fish/config.fish
    powershell  refdesk completion powershell | Out-String | iex       in $PROFILE
    """
    found = get_completion_class(shell)
    root = context.find_root()
    if found is None:
        raise errors.InvalidInputError(f"{shell} is not known.")
    try:
        click.echo(found(root.command, {}, "refdesk", VARIABLE).source())
    except RuntimeError as error:  # such as a bash older than 4.4
        raise errors.ConfigurationError(str(error)) from None
