"""The differential harness: random programs, run natively and under each engine."""
