"""Basic blocks of files and runs, as builders and users of throughput models need them.

`code` finds a file's functions, `split` cuts them into blocks, `rows` describes the
blocks; `exact` and `sampled` say how often each ran.
"""
