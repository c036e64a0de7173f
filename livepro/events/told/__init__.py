"""What comes of analyses: numbers by interval, and rows of tables."""
