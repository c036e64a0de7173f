"""What is measured: an analysis a module, each a compiled loop over events with a state for each thread.

How records become events, and what is written of the results, is not here.
"""
