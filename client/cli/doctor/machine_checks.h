// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "client/cli/doctor/finding.h"
#include "client/cli/doctor/machine_facts.h"

namespace covey::cli {

// What the processes of this machine will need.
struct MachineNeeds {
  uint64_t memory_bytes = uint64_t{1} << 30;
  uint64_t disk_bytes = uint64_t{1} << 30;
};

// Judges the facts, each by a line of its own; what the machine does not tell has none. Pure.
Findings CheckMachine(const MachineFacts& facts, const MachineNeeds& needs);

}  // namespace covey::cli
