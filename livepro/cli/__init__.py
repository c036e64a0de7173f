"""The command line: one module per subcommand, each importing late what it uses late."""
