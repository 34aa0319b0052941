// SPDX-License-Identifier: Apache-2.0
#pragma once

// For the .cc files of kernels only: stands before a loop over elements.
//
// In place, input and output are the same memory; the compiler must know that no element depends on
// another, or it falls back to one element at a time.
#if defined(__clang__)
#define COVEY_ELEMENTWISE _Pragma("clang loop vectorize(assume_safety)")
#else
#define COVEY_ELEMENTWISE _Pragma("GCC ivdep")
#endif
