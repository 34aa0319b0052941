// SPDX-License-Identifier: Apache-2.0
#pragma once

// A CHECK fails only through our own bug. It prints where and why, and then aborts, in production
// too. Bytes from a peer, a file or a user never reach a CHECK; errors in those are a Status.
// Thread-safe.

namespace covey {

// Prints `file:line: check failed: condition` and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace covey

#define COVEY_CHECK(condition)                  \
  (__builtin_expect(!!(condition), 1) ? (void)0 \
                                      : ::covey::CheckFailed(__FILE__, __LINE__, #condition))
