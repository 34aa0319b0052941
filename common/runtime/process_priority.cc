// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/process_priority.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/runtime/config_file.h"

namespace covey {
namespace {

constexpr int kLowNice = 10;
constexpr std::array kPriorities = {ProcessPriority::kNormal, ProcessPriority::kLow};

// On Linux a nice value belongs to a thread. A thread that has ended meanwhile needs none.
void LowerThread(id_t thread) {
  errno = 0;
  const int nice = getpriority(PRIO_PROCESS, thread);
  if (errno == 0 && nice < kLowNice) setpriority(PRIO_PROCESS, thread, kLowNice);
}

}  // namespace

const char* ProcessPriorityName(ProcessPriority priority) {
  return priority == ProcessPriority::kLow ? "low" : "normal";
}

void AddPriority(ConfigFile& options, ProcessPriority* field) {
  options.Add(
      "priority",
      [field](absl::string_view text) {
        for (const ProcessPriority priority : kPriorities) {
          if (text != ProcessPriorityName(priority)) continue;
          *field = priority;
          return absl::OkStatus();
        }
        return absl::InvalidArgumentError("neither normal nor low");
      },
      [field] { return std::string(ProcessPriorityName(*field)); },
      "normal, or low: when cores are scarce, other processes of this machine come first");
}

void ApplyPriority(ProcessPriority priority) {
  if (priority == ProcessPriority::kNormal) return;
  // This thread first: it may have to do without /proc.
  LowerThread(0);
  DIR* const threads = opendir("/proc/self/task");
  if (threads == nullptr) return;
  while (const dirent* const entry = readdir(threads)) {
    id_t thread = 0;
    if (absl::SimpleAtoi(entry->d_name, &thread)) LowerThread(thread);
  }
  closedir(threads);
}

}  // namespace covey
