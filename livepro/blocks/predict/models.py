"""The models and processors, and what a prediction is."""

from __future__ import annotations

from typing import NamedTuple

OTHER_ISA = "the processor does not execute its instruction set"
"""Reason of a block that a processor was not asked about."""


class Prediction(NamedTuple):
    """What one model says of one block: `cycles` each time it is executed again and again, and
    what bounds that. `reason` says why there is no prediction (empty: there is one)."""

    cycles: float | None
    bottleneck: str
    reason: str = ""


class Processor(NamedTuple):
    """A processor: its instruction set, and what llvm-mca (-mcpu) and OSACA (--arch) call it, empty where
    they do not know it."""

    isa: str
    llvm: str
    osaca: str


PROCESSORS = {
    "haswell": Processor("x86_64", "haswell", "HSW"),
    "broadwell": Processor("x86_64", "broadwell", "BDW"),
    "skylake": Processor("x86_64", "skylake", "SKX"),
    "skylake-avx512": Processor("x86_64", "skylake-avx512", "SKX"),
    "icelake": Processor("x86_64", "icelake-server", "ICX"),
    "sapphirerapids": Processor("x86_64", "sapphirerapids", "SPR"),
    "zen1": Processor("x86_64", "znver1", "ZEN1"),
    "zen2": Processor("x86_64", "znver2", "ZEN2"),
    "zen3": Processor("x86_64", "znver3", "ZEN3"),
    "zen4": Processor("x86_64", "znver4", "ZEN4"),
    "neoverse-n1": Processor("aarch64", "neoverse-n1", "N1"),
    "neoverse-v2": Processor("aarch64", "neoverse-v2", "V2"),
    "cortex-a72": Processor("aarch64", "cortex-a72", "A72"),
    "a64fx": Processor("aarch64", "a64fx", "A64FX"),
    "thunderx2": Processor("aarch64", "thunderx2t99", "TX2"),
}
"""By the names that livepro takes. OSACA has one Skylake, the server's."""

MODELS = ("llvm-mca", "osaca")

DEFAULT_PROCESSORS = {"x86_64": ("skylake",), "aarch64": ("neoverse-n1", "neoverse-v2")}
"""OSACA knows few instructions of the Neoverse N1, and llvm-mca before LLVM 17 no Neoverse V2."""
