// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey {

class ConfigFile;

// How a process stands to others that want the same cores.
enum class ProcessPriority {
  kNormal,
  // A nice value of at least 10: under contention it gets about a tenth of the time of a normal
  // process, and alone all of it.
  kLow,
};

// The name in configs: "normal" or "low".
const char* ProcessPriorityName(ProcessPriority priority);

// Makes it the option --priority, COVEY_PRIORITY or `priority` of a program. `field` outlives
// `options`.
void AddPriority(ConfigFile& options, ProcessPriority* field);

// For all threads that the process has now, and those that these start. Never raises the priority:
// kNormal changes nothing, and a process that is nicer already stays so.
void ApplyPriority(ProcessPriority priority);

}  // namespace covey
