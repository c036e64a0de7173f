"""What throughput models predict for blocks: llvm-mca and OSACA, as far as they are installed."""
