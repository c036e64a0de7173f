"""Lines of data that threads use together, truly or falsely."""
