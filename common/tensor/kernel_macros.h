// SPDX-License-Identifier: Apache-2.0
#pragma once

// For the .cc files of kernels only.

// The compiler makes one version of each kernel per instruction set, and the loader picks the
// widest that the processor has. Not under sanitizers: they instrument the loader's choice, which
// runs before they are initialized.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COVEY_KERNEL __attribute__((target_clones("avx2", "default")))
#else
#define COVEY_KERNEL
#endif

// In place, input and output are the same memory; the compiler must know that no element depends on
// another, or it falls back to one element at a time.
#if defined(__clang__)
#define COVEY_ELEMENTWISE _Pragma("clang loop vectorize(assume_safety)")
#else
#define COVEY_ELEMENTWISE _Pragma("GCC ivdep")
#endif
