"""What the compiled translators of both instruction sets share."""
