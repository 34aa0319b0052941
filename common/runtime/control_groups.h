// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace covey {

// The limits of the control groups around a process: its own group and those above, in the first
// or the second version of the kernel's interface. Absent: no group has such a limit, or the kernel
// does not tell. A value.
struct ControlGroupLimits {
  // The least limit.
  std::optional<uint64_t> memory_bytes;
  // The least that a limit leaves. Cached files that have not been used lately count as free.
  std::optional<uint64_t> free_memory_bytes;
  // Cores that the processes of the group may keep busy, the least of all groups.
  std::optional<double> cores;
};

// `cgroup` is the text of /proc/PID/cgroup; groups are mounted at `root`, which is /sys/fs/cgroup
// on a running system. Reads files.
ControlGroupLimits ReadControlGroups(absl::string_view cgroup, const std::string& root);
// The limits of this process.
ControlGroupLimits ReadOwnControlGroups();

}  // namespace covey
