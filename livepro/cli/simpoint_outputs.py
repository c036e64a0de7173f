"""What `livepro simpoint` does and writes once its command line is known to be right."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TextIO

from livepro.analyses.bbv import CutRule
from livepro.cli import simpoint_options
from livepro.errors import LiveproError
from livepro.formats import files, looppoint, pin_regions, simpoint, vectors_json
from livepro.linux.places import lowest_address
from livepro.model import ProcessResult, RunResult
from livepro.simpoint import Source, Study, Vectors, busiest, of_thread, study
from livepro.simpoint.choosing import from_files
from livepro.simpoint.clustering import check_installed
from livepro.simpoint.document import to_document
from livepro.simpoint.measured import measured
from livepro.simpoint.reading import to_document as vectors_document
from livepro.simpoint.spinning import PATTERNS, read_patterns, spinning
from livepro.simpoint.together import Region, Turn, together
from livepro.ui.view import shown

TOGETHER = "together"
"""What --thread says for all threads side by side."""

__all__ = ["check", "check_installed", "choose", "choose_from_run"]


def choose(
    args: argparse.Namespace,
    vectors: Vectors | None,
    sources: Sequence[Source],
    output: str,
    report: TextIO,
    number: int = 1,
    thread: int = 0,
) -> Study:
    """Choose points, write the files, print the study to `report` unless the user wants quiet.
    `number` tells threads apart in the names of the files, `thread` is the thread's, from 0."""
    from livepro.ui.progress import status_line

    with status_line(args.quiet) as progress:
        found = study(vectors, sources, simpoint_options.chosen(args), progress)
    points, weights = f"{output}.simpoints", f"{output}.weights"
    with files.open_text(points) as stream:
        simpoint.write_simpoints(stream, found.choice.simpoints)
    with files.open_text(weights) as stream:
        simpoint.write_weights(stream, found.choice.weights)
    if args.json:
        with files.open_text(files.name_for_thread(args.json, number)) as stream:
            json.dump(to_document(found), stream, indent=1, allow_nan=False)
            stream.write("\n")
    if args.labels:
        with files.open_text(files.name_for_thread(args.labels, number)) as stream:
            stream.writelines(f"{label}\n" for label in found.choice.clustering.labels.tolist())
    if args.pin_csv:
        regions = (
            pin_regions.PinRegion(
                f"phase {point.phase} from interval {point.interval}",
                *(thread, region, point.start, point.start + point.instructions, point.weight),
            )
            for region, point in enumerate(found.choice.points, 1)
        )
        with files.open_text(files.name_for_thread(args.pin_csv, number)) as stream:
            pin_regions.write(stream, regions)
    if not args.quiet:
        from livepro.ui.simpoint import print_study

        print_study(found, report)
        print(f"\nwritten: {points}, {weights}", file=report)
    return found


def choose_from_run(args: argparse.Namespace, result: RunResult) -> None:
    """Choose points for the threads that the user wants. Raises LiveproError where there are none."""
    if result.region is not None and not result.region.began:
        raise LiveproError(
            "The run ended before what was to be counted began.", "Check --start-at and --skip."
        )
    if args.thread == TOGETHER:
        choose_together(args, result)
        return
    for process, index in threads(args.thread, result):
        thread = process.threads[index]
        number = index + 1 if args.thread == "all" else 1
        if not thread.intervals:
            continue
        name = f"thread {index + 1} ({thread.name}) of {shown(process.command)}"
        vectors = of_thread(process.table, thread, name, CutRule(args.interval_size))
        few = too_few(vectors, args.interval_size)
        if few and not args.quiet:
            print(f"livepro: {few}", file=sys.stderr)
        if args.save:
            document = vectors_document(
                vectors,
                command=list(process.command),
                machine=process.machine,
                pid=process.pid,
                tid=thread.tid,
                thread=thread.name,
                interval_size=args.interval_size,
            )
            vectors_json.write(files.name_for_thread(args.save, number), document)
        sources = [*simpoint_options.beside(args.beside), *measured(result, process, index)]
        output = files.name_for_thread(args.output, number)
        choose(args, vectors, sources, output, sys.stderr, number, index)
    if args.loops:
        print_most_important_loops(process, args.loops)


def choose_together(args: argparse.Namespace, result: RunResult) -> None:
    """Choose regions of all threads of the busiest process, and write where other runs and simulators find
    them. Raises LiveproError where there are none."""
    found = busiest(result)
    if found is None or not result.instructions:
        raise LiveproError("The program executed nothing.", "Check the options that choose what counts.")
    process = found[0]
    patterns = [*PATTERNS, *(read_patterns(args.spin) if args.spin else ())]
    cut = together(result, process, args.interval_size, spinning(process.table, patterns))
    few = too_few(cut.vectors, args.interval_size)
    if few and not args.quiet:
        print(f"livepro: {few}", file=sys.stderr)
    study = choose(args, cut.vectors, [], args.output, sys.stderr)
    regions = cut.regions(study.choice)
    rows = [_row(number, region) for number, region in enumerate(regions, 1)]
    writers = looppoint.write_json, looppoint.write_csv, looppoint.write_sniper
    names = [f"{args.output}.{ending}" for ending in simpoint_options.REGION_FILES]
    for name, write in zip(names, writers, strict=True):
        with files.open_text(name) as stream:
            write(stream, rows)
    if not args.quiet:
        from livepro.ui.loops import print_regions

        print(file=sys.stderr)
        whole = float(cut.vectors.instructions.sum())
        print_regions(regions, float(cut.left_out.sum()), whole, sys.stderr)
        print(f"\nwritten: {', '.join(names)}", file=sys.stderr)
    if args.loops:
        print_most_important_loops(process, args.loops)


def _row(number: int, region: Region) -> looppoint.LoopRegion:
    start, end = region.start, region.end
    return looppoint.LoopRegion(
        number=number,
        cluster=region.phase,
        slice=region.interval,
        warmup=None if region.warmup is None else _marker(region.warmup),
        start=_marker(start),
        end=_marker(end),
        relative=end.number - start.number if end.address == start.address else 0,
        length=region.instructions,
        weight=region.weight,
        multiplier=region.multiplier,
    )


def _marker(turn: Turn) -> looppoint.Marker:
    # Simulators count from where a file is loaded, not as its headers number its addresses.
    offset = turn.offset - lowest_address(turn.module)
    return looppoint.Marker(turn.address, turn.module, offset, turn.number)


def print_most_important_loops(process: ProcessResult, most: int) -> None:
    """The loops in which most was executed, on standard error."""
    from livepro.flow import flow_graph, natural_loops
    from livepro.ui.loops import print_loops

    graph = flow_graph(process)
    print_loops(process.table, graph, natural_loops(graph)[:most], process.instructions, sys.stderr)


def threads(wanted: str, result: RunResult) -> list[tuple[ProcessResult, int]]:
    """The threads meant by --thread: a process image and the thread's place in it, each."""
    found = busiest(result)
    if found is None or not result.instructions:
        raise LiveproError("The program executed nothing.", "Check the options that choose what counts.")
    process, index = found
    if wanted == "all":
        return [(process, n) for n in range(len(process.threads))]
    if wanted != "busiest":
        index = int(wanted) - 1
        if index >= len(process.threads):
            raise LiveproError(
                f"--thread {wanted}: the busiest process had {len(process.threads)} threads.",
                "Name one of these, or `busiest`.",
            )
    return [(process, index)]


def too_few(vectors: Vectors, interval_size: int) -> str:
    """A hint where there are too few intervals to choose from, with an interval size that gives 200."""
    if len(vectors) >= 20:
        return ""
    better = max(1, int(vectors.instructions.sum()) // 200)
    rounded = int(float(f"{better:.1g}"))
    return (
        f"There are only {len(vectors)} intervals of {interval_size:,} instructions to choose from; "
        f"--interval-size {rounded} would give about 200."
    )


def check(args: argparse.Namespace, vectors: Vectors | None, sources: list[Source]) -> int:
    """Prove a choice that others made: --check."""
    from livepro.simpoint.study import prover
    from livepro.ui.simpoint import print_check

    points = simpoint.read_simpoints(args.check[0])
    weights = simpoint.read_weights(args.check[1])
    proving, instructions = prover(vectors, sources)
    from_files(points, weights, (args.check[0], args.check[1]), len(instructions))
    proof = proving.prove([(p.interval, w.weight) for p, w in zip(points, weights, strict=True)])
    if not args.quiet:
        print_check(proof, len(points), sys.stdout)
    if args.max_error is not None and proof.error > args.max_error:
        print(
            f"livepro: The error is {100 * proof.error:.2f} %, more than {100 * args.max_error:g} %.",
            file=sys.stderr,
        )
        return 1
    return 0
