"""Java virtual machines: what HotSpot keeps in its code cache, read from its memory.

Nothing is asked of the virtual machine: libjvm describes its own data structures
(`vmstructs`), and its code cache is read where it lies (`codecache`), as the
serviceability agent of the JDK does. So it works at any moment, whatever the
virtual machine's threads are doing, and needs no tool of the JDK's.
"""
