"""`livepro completion`: what makes a shell complete livepro's commands and options."""

from __future__ import annotations

from collections.abc import Sequence

from livepro.cli.parser import Parser

SHELLS = ("bash", "zsh", "fish")

DESCRIPTION = """\
Print a script that makes a shell complete livepro's commands, options and files."""

EPILOG = """\
examples:
  livepro completion bash > ~/.local/share/bash-completion/completions/livepro
  livepro completion zsh > ~/.zfunc/_livepro          (a directory of $fpath)
  livepro completion fish > ~/.config/fish/completions/livepro.fish"""


def parser() -> Parser:
    """The arguments of `livepro completion`."""
    out = Parser("livepro completion", DESCRIPTION, EPILOG)
    out.usage = "livepro completion SHELL"
    out.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))
    return out


def main(argv: Sequence[str]) -> int:
    """Print the script; 0."""
    args = parser().parse_args(argv)
    print(script(args.shell))
    return 0


def script(shell: str) -> str:
    """The script for one of SHELLS, made of the commands' own parsers."""
    import shtab

    from livepro.cli.whole import whole

    top, commands = whole()
    for command in commands:
        for action in command._actions:  # argparse has no other way to them
            metavar = str(action.metavar or action.dest)
            if "DIR" in metavar:
                setattr(action, "complete", shtab.DIRECTORY)  # noqa: B010 (shtab's own attribute)
            elif "FILE" in metavar or ".json" in metavar or action.dest == "command":
                setattr(action, "complete", shtab.FILE)  # noqa: B010
    return str(shtab.complete(top, shell))
