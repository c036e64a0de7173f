"""The tracer's side of threads that run: the run loop, stops, system calls, room for code, halting.

Everything here happens while a thread is stopped. What a signal does to one is `signals`', how it begins
and ends is `lifecycle`'s, the fragments that it runs are `codecache`'s.
"""
