"""What livepro costs, measured beside other tools; see README.md."""
