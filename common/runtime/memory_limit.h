// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace covey {

// The bytes of memory that this process may have: the least of what the machine has, what the
// process's control groups allow (in their second version), and its address space (RLIMIT_AS).
// Reads /proc and /sys, and asks the system.
uint64_t MemoryLimit();

// The folders below /sys/fs/cgroup of the control groups of a process, its own first, by
// /proc/self/cgroup in its second version; empty in the first version. Pure.
std::vector<std::string> ControlGroupFolders(absl::string_view cgroup);

}  // namespace covey
