"""Blocks by samples of the program counter, taken by livepro itself or by perf."""
