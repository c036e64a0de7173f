"""A run made reachable from outside: commands over a Unix socket, counts for Prometheus.

`served` makes it so, `client` asks; the client loads nothing of what a run needs.
"""
