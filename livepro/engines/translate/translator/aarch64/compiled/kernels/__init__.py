"""What numba compiles for AArch64."""
