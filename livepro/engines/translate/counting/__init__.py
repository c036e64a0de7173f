"""What threads count, and how it is read: counters, budgets, allowances, intervals, the live view.

A thread's area in the target is read and written here. The code that counts there is made by `translator`.
"""
