"""The compiled translator for AArch64: kernels, the arrays they work on, and what they are given."""
