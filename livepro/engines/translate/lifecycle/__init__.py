"""How threads and processes come under the engine, and leave it: attach, birth, end, detach, homing.

A thread's area and a process's code cache are given out and taken back here. What happens in between is
`threads`'.
"""
