"""livepro: exact per-thread instruction counts of live Linux processes."""

__version__ = "0.1.0"
