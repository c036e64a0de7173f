"""Livepro's own calls made to fail one at a time; the program attached to must go on: see `__main__`."""
