"""What turns a basic block of the program into a fragment: its source, the emitter, the copies of loops.

`x86_64` and `aarch64` hold the same file names, and all that knows of an instruction set. Where fragments
are put is `codecache`'s.
"""
