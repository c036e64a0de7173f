"""What people see: the summary at the end, the progress line while it runs."""
