"""Runs OSACA on the files that it is given, ARCH FILE..., and prints a line of JSON for each.

A script of its own, which nothing of livepro imports: OSACA stays in this process.
"""

import contextlib
import io
import json
import os
import sys
import tempfile
from typing import Any


def analyse(arch: str, path: str) -> dict[str, Any]:
    """Port pressure, loop-carried dependency and critical path of the marked block of a file, in cycles."""
    from osaca.osaca import check_arguments, create_parser, run
    from ruamel.yaml import YAML

    with tempfile.TemporaryDirectory() as folder:
        yaml = os.path.join(folder, "answer.yaml")
        parser = create_parser()
        arguments = parser.parse_args(["--arch", arch, "--yaml-out", yaml, path])
        check_arguments(arguments, parser)
        said = io.StringIO()
        failure = None
        with contextlib.redirect_stdout(said):
            try:
                run(arguments, output_file=said)
            except TypeError as error:
                # OSACA 0.7.1 adds up a critical path with an instruction that it has no data for; the
                # report, which is made before, names that instruction.
                failure = error
        arguments.file.close()
        arguments.yaml_out.close()
        unknown = without_data(said.getvalue())
        if unknown:
            return {"reason": no_data(unknown)}
        if failure is not None:
            raise failure
        with open(yaml) as stream:
            text = stream.read()
    begin = text.index("\nSummary:") + 1
    summary = YAML(typ="safe").load(text[begin : text.index("\nTarget:", begin)])["Summary"]
    return {"ports": summary["PortPressure"], "lcd": summary["LCD"], "cp": summary["CriticalPath"]}


def without_data(report: str) -> list[str]:
    """The instructions that a report marks with an X: OSACA has no data for them."""
    rows = (line.rpartition("|")[2].strip() for line in report.splitlines() if "|" in line)
    return [" ".join(row.removeprefix("X ").split()) for row in rows if row.startswith("X ")]


def no_data(unknown: list[str]) -> str:
    """What a user is told of them."""
    others = len(unknown) - 1
    more = f" and {others} other{'s' * (others > 1)}" if others else ""
    return f"no data for: {unknown[0]}{more}"


def main() -> None:
    """One line for each file."""
    out = sys.stdout
    arch, *files = sys.argv[1:]
    for path in files:
        try:
            with contextlib.redirect_stdout(sys.stderr):
                answer = analyse(arch, path)
        except (Exception, SystemExit) as error:
            answer = {"reason": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
