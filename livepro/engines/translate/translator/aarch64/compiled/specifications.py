"""What the kernels for AArch64 are given."""

from __future__ import annotations

SPECIFICATIONS = {
    "translate": (
        "i64 u8 n b b u32 u8 i64.2 u32 i64 i32.2 i64.2 i64.2 i64.2 i64.2 i64.2 i64 i64 i64 i64 i64.2"
    ),
    "take": "i64 i64 i32.2 i64.2 i64 i64 i64 i64 i64 i64 i64.2 n",
    "links_to": "i64 i64 i32.2 n",
    "forget": "i64 i64 i32.2 n n",
    "rehash": "i64 i64 i32.2 i64 i32.2",
    "publish": "i32 i64.2 n",
}
"""See `native.Native`."""
