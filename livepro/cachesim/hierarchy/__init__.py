"""Hierarchies of caches and TLBs of any number of levels, as a TOML file describes them."""
