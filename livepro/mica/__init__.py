"""MICA's characterisation of programs, independent of any microarchitecture, over the event stream.

After Hoste and Eeckhout, "Microarchitecture-Independent Workload Characterization", IEEE Micro 27(3), 2007,
and their tool. A stream's records become plain arrays of events (`flattening`); each analysis is a compiled
loop over them, with a state of its own for each thread; intervals are slices of these arrays.
"""
