"""The code cache of an address space: the fragments, where they lie, and how they are linked.

Here are the files that fragments are written to, the branches from one fragment to the next, the lookup
table of indirect branches, and the flush. How a fragment's bytes are made is `translator`'s, who runs in it
is `threads`'.
"""
