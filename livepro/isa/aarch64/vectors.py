"""Vector registers as the kernel gives them."""
