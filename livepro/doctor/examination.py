"""What `livepro doctor` says: what works on this machine, each thing tried rather than assumed."""

from __future__ import annotations

import os
import platform
import sys
from importlib import import_module, metadata

from livepro import __version__
from livepro.engines import can_translate, default_engine
from livepro.engines.translate import backend_for
from livepro.isa import MACHINES, for_machine
from livepro.linux.cpu import cpu
from livepro.linux.perf_event import probe_instruction_counter
from livepro.linux.permissions import Permissions, permissions
from livepro.linux.probe import probe_block_step, probe_tracing
from livepro.linux.userfault import WriteFaults, call_here
from livepro.ui.console import open_console
from livepro.ui.findings import Finding, State, print_findings

LIBRARIES = {
    "capstone": "capstone",
    "numpy": "numpy",
    "pycxxfilt": "pycxxfilt",
    "pyelftools": "elftools",
    "python-ptrace": "ptrace",
    "rich": "rich",
}
"""Distribution name to module name of what a run needs on any machine."""

ENGINES = {
    "translate": "counts in the program itself, stops only for new code",
    "block": "one stop per basic block",
    "step": "one stop per instruction, the reference",
}
"""What each engine does."""


def examine() -> int:
    """Print the findings on standard output; 0 if a run is possible, else 1."""
    # The probes fork: before the libraries are loaded, some of which start threads.
    allowed = permissions()
    groups = {
        "Tracing": tracing(allowed),
        "Libraries": libraries(),
        "Machine": machine(),
    }
    possible = all(f.state is not State.BAD for group in groups.values() for f in group)
    groups["Engines"] = engines(possible, platform.machine())
    console = open_console(sys.stdout)
    console.print(f"livepro {__version__}\n")
    for title, findings in groups.items():
        print_findings(console, title, findings)
        console.print()
    console.print(
        "livepro can run here." if possible else "livepro cannot run here: see the lines marked NO."
    )
    return 0 if possible else 1


def tracing(allowed: Permissions) -> list[Finding]:
    """May a child be traced, and what bears on it."""
    probe = probe_tracing()
    block = probe_block_step()
    counter = probe_instruction_counter()
    return [
        Finding(
            "ptrace",
            State.OK if probe.works else State.BAD,
            probe.detail,
            "" if probe.works else allowed.remedy(),
        ),
        Finding(
            "Yama ptrace_scope", State.OK if allowed.yama in (None, 0, 1) else State.NOTE, allowed.yama_text
        ),
        Finding(
            "CAP_SYS_PTRACE",
            State.OK if allowed.sys_ptrace else State.NOTE,
            "effective" if allowed.sys_ptrace else "not effective (needed only for other users' processes)",
        ),
        Finding("seccomp", State.NOTE if allowed.seccomp else State.OK, allowed.seccomp_text),
        Finding("block-step", State.OK if block.works else State.NOTE, block.detail),
        Finding(
            "hardware counter", State.OK if counter.works else State.NOTE, counter.detail, counter.remedy
        ),
        generated_code(),
        new_code(),
    ]


def generated_code() -> Finding:
    """May writes to generated code be watched: else it is compared whenever it is executed."""
    machine = platform.machine()
    numbers = for_machine(machine).syscalls.numbers if machine in MACHINES else {}
    name = "generated code"
    try:
        faults = WriteFaults(os.getpid(), call_here, numbers)
    except (OSError, KeyError) as error:
        return Finding(name, State.NOTE, f"compared whenever it is executed (no userfaultfd: {error})")
    faults.close()
    if faults.whole:
        return Finding(name, State.OK, "writes to it are watched (userfaultfd)")
    detail = "watched in Java virtual machines, else compared (userfaultfd without CAP_SYS_PTRACE)"
    return Finding(name, State.NOTE, detail)


def new_code() -> Finding:
    """Is what translates new code compiled: else that takes several times as long."""
    name, machine = "new code", platform.machine()
    backend = backend_for(machine) if can_translate(machine) else None
    if backend is None or backend.compiler is None:
        return Finding(name, State.NOTE, "translated in Python on this kind of machine")
    prepared = backend.compiler().prepared
    if prepared:
        return Finding(name, State.OK, "translated by compiled code")
    if prepared is None:
        return Finding(
            name,
            State.NOTE,
            "translated in Python, slowly: numba is missing",
            "Run `pip install 'livepro[events]'`.",
        )
    return Finding(
        name,
        State.NOTE,
        "translated in Python, slowly, until a run has had that compiled",
        "Run `livepro doctor --prepare`, or any program.",
    )


def libraries() -> list[Finding]:
    """The libraries a run needs: their versions, and that they load."""
    machine = platform.machine()
    own = for_machine(machine).libraries if machine in MACHINES else {}
    return [library(*names) for names in sorted({**LIBRARIES, **own}.items())]


def library(name: str, module: str) -> Finding:
    """One library, loaded for real."""
    try:
        import_module(module)
        return Finding(name, State.OK, metadata.version(name))
    except Exception as error:  # a broken installation fails in any way it likes
        return Finding(
            name,
            State.BAD,
            f"does not load: {type(error).__name__}: {error}",
            f"Run `{sys.executable} -m pip install --force-reinstall {name}`.",
        )


def machine() -> list[Finding]:
    """Kernel, processor, SIMD sets, and whether livepro knows the instruction set."""
    processor = cpu()
    name = processor.model or platform.machine()
    return [
        Finding("kernel", State.OK, f"{platform.system()} {platform.release()}"),
        Finding("Python", State.OK, platform.python_version()),
        Finding("processor", State.OK, name + (", virtualised" if processor.hypervisor else "")),
        Finding(
            "SIMD sets", State.OK if processor.simd else State.NOTE, " ".join(processor.simd) or "none named"
        ),
    ]


def engines(possible: bool, name: str) -> list[Finding]:
    """Which engines can count programs of machine `name` here, the fastest first."""
    default = default_engine(name)
    found = []
    for engine, text in ENGINES.items():
        if engine == "translate" and not can_translate(name):
            found.append(Finding(engine, State.NOTE, f"not for {name} yet"))
            continue
        text += "; the default" if engine == default else ""
        found.append(Finding(engine, State.OK if possible else State.BAD, text))
    return found
