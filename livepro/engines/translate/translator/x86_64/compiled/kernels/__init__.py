"""What numba compiles for x86-64."""
