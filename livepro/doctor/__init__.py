"""What works on a machine, tried rather than assumed, and what the tests need."""
