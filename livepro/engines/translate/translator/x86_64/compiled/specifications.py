"""What the kernels for x86-64 are given."""

from __future__ import annotations

SPECIFICATIONS = {
    "translate": (
        "i64 u8 n b b u8 u8 u64 u64 i32 i64.2 i32.2 i64.2 i64 u8 i64 i64 i32.2 i64.2 i64.2 i64.2 i64.2 i64.2 "
        "i64.2 i64 i64 i64 i64 i64.2 i64 i64"
    ),
    "take": "i64 i64 i32.2 i64.2 i64 i64 i64 i64 i64 i64 i64.2 n",
    "links_to": "i64 i64 i32.2 n",
    "forget": "i64 i64 i32.2 n n",
    "rehash": "i64 i64 i32.2 i64 i32.2",
    "enter": "i64 u8 u64 u64 i64 n i64.2 n n i64.2",
    "publish": "i32 i64.2 n",
    "measure_all": "u8 n u8",
    "shapes_of": "u8 i64 i64 u64 u64 i32 u8 i32 u8",
    "tell": "u8 i64 i64 u64 u64 i32 i64.2 i32.2 u8 u8 u8 i32 u8 i32 i64",
    "find_shape": "u8 n u64 u64 i64",
    "enter_shape": "u8 n u64 u64 i32 n n",
    "rehash_shapes": "u64 u64 i32 u64 u64 i32",
    "arrive": (
        "n n n n n n n i64 u8 i32 u64 u64 i64 i64.2 i32 i64.2 u8 u8 u64 u64 i32 i64.2 i32.2 i64.2 i64 u8 "
        "i64 i64 i32.2 i64.2 i64.2 i64.2 i64.2 i64.2 i64.2 i64 i64 i64 i64 i64.2 i64 i64"
    ),
    "answer": "i64.2 i64.2 i64.2 i64.2 i64 n n n",
}
"""See `native.Native`."""
