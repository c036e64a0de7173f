"""Attaching and detaching again and again: `python -m tests.soak --times 200`."""
