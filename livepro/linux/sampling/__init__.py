"""Sampling the program counter by perf_event_open(2): events, their ring buffers, their records.

Layouts and constants are those of the kernel header include/uapi/linux/perf_event.h.
"""
