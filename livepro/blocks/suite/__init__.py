"""Suites of benchmarks behind one manifest, and the data sets that come of them."""
