"""Names as people read them: C++ and Rust symbols demangled, functions that JIT compilers made."""
