// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/control_groups.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/descriptor.h"

namespace covey {
namespace {

// What the first version shows where there is no limit: the largest number of whole pages.
constexpr uint64_t kNoLimit = uint64_t{1} << 62;

// Of a file of the kernel, which is short; empty when there is none.
std::string TextOf(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(4096, '\0');
  const ssize_t size = file.open() ? read(file.number(), text.data(), text.size()) : 0;
  text.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  return text;
}

template <typename T>
void KeepLeast(std::optional<T>& least, std::optional<T> value) {
  if (value.has_value()) least = std::min(least.value_or(*value), *value);
}

// The number that a text begins with; absent for "max" and for what is none.
std::optional<uint64_t> Number(absl::string_view text) {
  uint64_t number = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &number)) return std::nullopt;
  return number;
}

// The value of the line "NAME VALUE".
std::optional<uint64_t> NumberOf(absl::string_view name, absl::string_view text) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    if (words.size() == 2 && words[0] == name) return Number(words[1]);
  }
  return std::nullopt;
}

void AddMemory(std::optional<uint64_t> limit, std::optional<uint64_t> used,
               std::optional<uint64_t> idle_files, ControlGroupLimits& limits) {
  if (!limit.has_value() || *limit >= kNoLimit) return;
  KeepLeast(limits.memory_bytes, limit);
  if (!used.has_value()) return;
  const uint64_t needed = *used - std::min(*used, idle_files.value_or(0));
  KeepLeast<uint64_t>(limits.free_memory_bytes, *limit - std::min(*limit, needed));
}

void AddCores(std::optional<uint64_t> quota, std::optional<uint64_t> period,
              ControlGroupLimits& limits) {
  if (!quota.has_value() || period.value_or(0) == 0) return;
  KeepLeast<double>(limits.cores, static_cast<double>(*quota) / static_cast<double>(*period));
}

void AddFolder(const std::string& folder, ControlGroupLimits& limits) {
  const auto text = [&folder](absl::string_view file) {
    return TextOf(absl::StrCat(folder, "/", file));
  };
  AddMemory(Number(text("memory.max")), Number(text("memory.current")),
            NumberOf("inactive_file", text("memory.stat")), limits);
  const std::vector<std::string> words = absl::StrSplit(text("cpu.max"), ' ');
  if (words.size() == 2) AddCores(Number(words[0]), Number(words[1]), limits);
}

// In the first version each controller has folders of its own; -1 is no quota.
void AddFolderOf(absl::string_view controller, const std::string& folder,
                 ControlGroupLimits& limits) {
  const auto text = [&folder](absl::string_view file) {
    return TextOf(absl::StrCat(folder, "/", file));
  };
  if (controller == "memory") {
    AddMemory(Number(text("memory.limit_in_bytes")), Number(text("memory.usage_in_bytes")),
              NumberOf("total_inactive_file", text("memory.stat")), limits);
  } else if (controller == "cpu") {
    AddCores(Number(text("cpu.cfs_quota_us")), Number(text("cpu.cfs_period_us")), limits);
  }
}

// "/srv/pod" -> "/srv/pod", "/srv", "". In a container the kernel names groups of the host, which
// are not mounted there, and the last one is the container's own.
std::vector<std::string> GroupsAround(absl::string_view path) {
  std::vector<std::string> groups;
  std::string group(path);
  while (group.size() > 1) {
    groups.push_back(group);
    group.resize(group.rfind('/'));
  }
  groups.emplace_back();
  return groups;
}

}  // namespace

ControlGroupLimits ReadControlGroups(absl::string_view cgroup, const std::string& root) {
  ControlGroupLimits limits;
  for (const absl::string_view line : absl::StrSplit(cgroup, '\n')) {
    // "0::/PATH" in the second version, "4:cpu,cpuacct:/PATH" in the first.
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || parts[2].empty() || parts[2].front() != '/') continue;
    for (const std::string& group : GroupsAround(parts[2])) {
      if (parts[1].empty()) {
        AddFolder(absl::StrCat(root, group), limits);
        continue;
      }
      for (const absl::string_view controller : absl::StrSplit(parts[1], ',')) {
        AddFolderOf(controller, absl::StrCat(root, "/", controller, group), limits);
      }
    }
  }
  return limits;
}

ControlGroupLimits ReadOwnControlGroups() {
  return ReadControlGroups(TextOf("/proc/self/cgroup"), "/sys/fs/cgroup");
}

}  // namespace covey
