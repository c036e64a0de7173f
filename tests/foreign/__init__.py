"""Test suites of others as programs under measurement."""
