"""Streams as spans of events, for analyses that see arrays: a block executed whole is one span, its operands
copied by a static list.

`flattening` makes them from records, `listing` has what is static, `feeding` follows a thread's stream,
`crew` lets analyses work side by side, and `column` is an array that grows.
"""
