"""What livepro keeps from run to run: where, and how it is known again and trusted.

The store (`artifacts`) keeps arrays by key and knows nothing of what they mean: that is for those who keep
something (fragments: `engines.translate.persist`; symbols: `linux.symbols`; descriptions: `described`).
"""
