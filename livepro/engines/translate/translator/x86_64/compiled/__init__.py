"""The translator of x86-64 code, compiled: what `source`, `counter` and `emitter` do of plain blocks.

Kernels over arrays, compiled by numba. A block with anything rare in it (a system call, a repeated
instruction, one that must be stepped, a loop of its own) is left to the translator in Python, and so is
what an instruction means: each *shape* of an encoding (all of it but displacements and most immediates) is
asked of iced-x86 once.
"""
