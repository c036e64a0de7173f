"""The kernels that translate AArch64 code, compiled on the host: the guest would take half an hour.

numba compiles them for the host, in LLVM's own language, which LLVM makes AArch64 code of. In the guest,
`python3 -m guest.kernels FILE` keeps that where a run looks for it.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tempfile
from pathlib import Path

TRANSLATOR = "livepro/engines/translate/translator"
_COUNTED_DOWN = re.compile(
    r"^( *)(%\S+) = .*call i8 @llvm\.x86\.atomic\.sub\.cc\.i64\(ptr[^%]*(%\S+), i64 1, i32 4\).*$",
    re.MULTILINE,
)
"""References to arrays that own their memory (there are none), given back as x86-64 does it: whether that was
the last one."""


def kernels(checkout: Path, cache: Path) -> Path:
    """A file with the kernels of a checkout: from the cache, or compiled (half a minute)."""
    from .image import keep

    translator = checkout / TRANSLATOR
    sources = [translator.with_name("layout.py"), translator / "emitted.py"]
    for place in ("aarch64", "compiling"):
        sources += sorted((translator / place).rglob("*.py"))
    key = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    kept = cache / f"kernels-{key}"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix="building.") as directory:
            made = Path(directory) / "kernels"
            print("Compiling the guest's kernels ...", flush=True)
            code, name, symbols = _compiled()
            made.write_bytes(json.dumps([name, symbols]).encode() + b"\n" + code)
            keep(made, kept)
    return kept


def _compiled() -> tuple[bytes, str, list[str]]:
    from llvmlite import binding

    from livepro.engines.translate.translator.aarch64.compiled.entries import built

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    triple = "aarch64-unknown-linux-gnu"
    machine = binding.Target.from_triple(triple).create_target_machine(cpu="generic", opt=2, reloc="pic")
    made = built()
    text = re.sub(r"(?m)^target triple = .*$", f'target triple = "{triple}"', made.assembly)
    text = re.sub(r"(?m)^target datalayout = .*$", f'target datalayout = "{machine.target_data}"', text)
    text = _COUNTED_DOWN.sub(
        r"\1%old = atomicrmw sub ptr \3, i64 1 seq_cst"
        "\n"
        r"\1%last = icmp eq i64 %old, 1"
        "\n"
        r"\1\2 = zext i1 %last to i8",
        text,
    )
    module = binding.parse_assembly(text)
    module.verify()
    found = made.object_file(machine.emit_object(module))
    return found.code, found.name, list(found.symbols)


def main(path: str) -> None:
    """Keep what is in a file where a run looks for it."""
    from livepro.engines.translate.translator.aarch64.compiled.store import kernels
    from livepro.engines.translate.translator.compiling.native import ObjectFile

    head, _, code = Path(path).read_bytes().partition(b"\n")
    name, symbols = json.loads(head)
    kernels().write(ObjectFile(code, name, symbols), {})


if __name__ == "__main__":
    main(sys.argv[1])
