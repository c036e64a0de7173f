"""Linux as livepro needs it: ptrace, wait statuses, /proc, ELF. No instruction meaning."""
