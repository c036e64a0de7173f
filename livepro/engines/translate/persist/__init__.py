"""Fragments kept from run to run: written to disk as a module's process ends, put back when the next begins.

Here are the arrays that are kept of one module, and the persisted cache that they are looked for in. The
file store itself (`livepro.kept.artifacts`) knows nothing of fragments.
"""
