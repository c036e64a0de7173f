"""The translate engine's x86-64 part: encodings, facts about flags, block copies."""
