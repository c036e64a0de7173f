"""Signals of the program: its handlers, their delivery and deferral, the state they are shown.

State translation (from a place in a fragment to a boundary between the program's instructions) is here, since
signals need it most; `threads` uses it, too.
"""
