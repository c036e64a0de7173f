"""The engines: three ways to watch every instruction, one contract (`engines.base`)."""
