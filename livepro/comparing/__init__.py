"""Two reports side by side: what appeared, vanished, grew and shrank, and whether that may be."""
