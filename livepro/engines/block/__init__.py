"""The block engine: one stop per block or less, and nothing added to the target but breakpoints."""

from livepro.engines.block.engine import BlockEngine

__all__ = ["BlockEngine"]
