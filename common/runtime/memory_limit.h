// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace covey {

// The bytes of memory that this process may have: the least of what the machine has, what the
// process's control groups allow (control_groups.h), and its address space (RLIMIT_AS). Reads /proc
// and /sys, and asks the system.
uint64_t MemoryLimit();

}  // namespace covey
