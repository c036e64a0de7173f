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
        with contextlib.redirect_stdout(said):
            run(arguments, output_file=said)
        arguments.file.close()
        arguments.yaml_out.close()
        with open(yaml) as stream:
            text = stream.read()
    begin = text.index("\nSummary:") + 1
    summary = YAML(typ="safe").load(text[begin : text.index("\nTarget:", begin)])["Summary"]
    lines = said.getvalue().splitlines()
    unknown = [line.split("|")[-1].strip() for line in lines if "| X " in line]
    if unknown:
        return {"reason": f"no data for: {unknown[0].removeprefix('X ').strip()}"}
    return {"ports": summary["PortPressure"], "lcd": summary["LCD"], "cp": summary["CriticalPath"]}


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
