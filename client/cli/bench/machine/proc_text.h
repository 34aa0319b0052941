// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace covey::cli {

// Readers of files under /proc and /sys. Pure. They return nothing for a text of another form.

// The first line of /proc/stat, in clock ticks.
struct CpuLine {
  uint64_t total = 0;
  // user, nice and system; not interrupts, idle and steal.
  uint64_t busy = 0;
  uint64_t steal = 0;
};
std::optional<CpuLine> ReadCpuLine(absl::string_view stat);

// /proc/PID/stat; times in clock ticks.
struct ProcessLine {
  int parent = 0;
  uint64_t user = 0;
  uint64_t system = 0;
  // Both, of children that have ended and were waited for.
  uint64_t children = 0;
  // Minor and major.
  uint64_t page_faults = 0;
};
std::optional<ProcessLine> ReadProcessLine(absl::string_view stat);

// Voluntary and other context switches of a thread: /proc/PID/task/TID/status.
std::optional<uint64_t> ReadContextSwitches(absl::string_view status);

// The proportional set size in bytes: /proc/PID/smaps_rollup.
std::optional<uint64_t> ReadPss(absl::string_view smaps_rollup);

// The chosen one of "always [madvise] never"; the text itself when none is in brackets.
std::string ReadChoice(absl::string_view text);

// The value of the first line "model name : …" of /proc/cpuinfo.
std::optional<std::string> ReadCpuModel(absl::string_view cpuinfo);

}  // namespace covey::cli
