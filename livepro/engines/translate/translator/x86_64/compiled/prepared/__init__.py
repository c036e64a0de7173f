"""What is compiled and learnt before it is needed, and kept."""
