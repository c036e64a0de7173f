"""Fragments whose source the program may change: what notices it.

Pages of generated code are write-protected here, changed blocks are dropped, and the places where a
region begins or ends get their stops. Flushing everything is `codecache`'s.
"""
