"""The step engine, and what the block engine has of it: where threads are, blocks, keeping to a region.

Threads are single-stepped here. What happens when one stops for something else is `tracee`'s, breakpoints
are `block`'s.
"""
