"""What numba compiles. It is imported to be compiled (`entries`): runs have the machine code."""
