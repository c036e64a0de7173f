"""The cache and branch simulator: an analysis of the event stream, with Cachegrind's model."""
