// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/memory_limit.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/descriptor.h"

namespace covey {
namespace {

// Of a file of the kernel, which is short; empty when there is none.
std::string TextOf(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(4096, '\0');
  const ssize_t size = file.open() ? read(file.number(), text.data(), text.size()) : 0;
  text.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  return text;
}

}  // namespace

std::vector<std::string> ControlGroupFolders(absl::string_view cgroup) {
  std::vector<std::string> folders;
  for (absl::string_view line : absl::StrSplit(cgroup, '\n')) {
    if (!absl::StartsWith(line, "0::/")) continue;
    std::string path(absl::StripTrailingAsciiWhitespace(line.substr(3)));
    while (path.size() > 1) {
      folders.push_back(path);
      path.resize(path.rfind('/'));
    }
    folders.push_back("");
  }
  return folders;
}

uint64_t MemoryLimit() {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_bytes > 0) least = static_cast<uint64_t>(pages) * page_bytes;
  rlimit space = {};
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
    least = std::min<uint64_t>(least, space.rlim_cur);
  }
  for (const std::string& group : ControlGroupFolders(TextOf("/proc/self/cgroup"))) {
    uint64_t allowed = 0;  // the file says "max" where there is no limit
    const std::string text = TextOf(absl::StrCat("/sys/fs/cgroup", group, "/memory.max"));
    if (absl::SimpleAtoi(text, &allowed)) least = std::min(least, allowed);
  }
  return least;
}

}  // namespace covey
