"""Stops at new code answered by compiled code, as long as nothing else happens."""
