"""Structures of compiled loops: hash tables, and which blocks were used last."""
