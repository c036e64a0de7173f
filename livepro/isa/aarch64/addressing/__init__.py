"""Where an AArch64 instruction reaches in memory, beyond a base and an offset."""
