"""Servers under load that are attached to and let go again and again."""
