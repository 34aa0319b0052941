// SPDX-License-Identifier: Apache-2.0
#include "client/cli/doctor/machine_facts.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/console/text_file.h"
#include "common/runtime/control_groups.h"
#include "common/runtime/process_main.h"
#include "common/security/node_credentials.h"

namespace covey::cli {
namespace {

std::string TextOf(const std::string& path) { return ReadTextFile(path).value_or(""); }

std::optional<uint64_t> NumberIn(const std::string& path) {
  uint64_t number = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(TextOf(path)), &number)) return std::nullopt;
  return number;
}

std::optional<uint64_t> FreeMemory(absl::string_view meminfo) {
  for (absl::string_view line : absl::StrSplit(meminfo, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    uint64_t kibibytes = 0;
    if (words.size() >= 2 && words[0] == "MemAvailable:" &&
        absl::SimpleAtoi(words[1], &kibibytes)) {
      return kibibytes * 1024;
    }
  }
  return std::nullopt;
}

// "always [madvise] never" -> "madvise".
std::optional<std::string> ChoiceIn(absl::string_view text) {
  const size_t open = text.find('[');
  const size_t close = text.find(']');
  if (open == absl::string_view::npos || close == absl::string_view::npos || close < open) {
    return std::nullopt;
  }
  return std::string(text.substr(open + 1, close - open - 1));
}

MachineFacts::Folder ReadFolder(const std::string& path) {
  MachineFacts::Folder folder{.path = path};
  struct statvfs system = {};
  if (statvfs(path.c_str(), &system) != 0 || access(path.c_str(), W_OK | X_OK) != 0) {
    folder.error = std::strerror(errno);
    return folder;
  }
  folder.free_bytes = uint64_t{system.f_bavail} * system.f_frsize;
  folder.bytes = uint64_t{system.f_blocks} * system.f_frsize;
  return folder;
}

MachineFacts::Credentials ReadCredentials(const std::string& folder, absl::Time now) {
  const NodeFolderReport report = InspectNodeFolder(folder, now);
  MachineFacts::Credentials credentials{.folder = folder, .problems = report.problems};
  if (const auto expiry = report.Expiry()) credentials.left = *expiry - now;
  return credentials;
}

}  // namespace

std::optional<uint64_t> ReadSocketBuffer(absl::string_view sizes, BufferGrowth growth) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(absl::StripAsciiWhitespace(sizes), absl::ByAnyChar(" \t"), absl::SkipEmpty());
  uint64_t bytes = 0;
  if (words.size() != 3 ||
      !absl::SimpleAtoi(words[growth == BufferGrowth::kGrows ? 2 : 1], &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

MachineFacts ReadMachineFacts(const MachineQuestion& question, absl::Time wall_now) {
  MachineFacts facts;
  timex clock = {};
  const int state = adjtimex(&clock);
  if (state >= 0) facts.clock_is_synchronized = state != TIME_ERROR;
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) facts.open_files_max = files.rlim_max;
  facts.free_memory_bytes = FreeMemory(TextOf("/proc/meminfo"));
  const ControlGroupLimits groups = ReadOwnControlGroups();
  facts.group_memory_bytes = groups.free_memory_bytes;
  facts.cpu_quota = groups.cores;
  facts.huge_pages = ChoiceIn(TextOf("/sys/kernel/mm/transparent_hugepage/enabled"));
  facts.cores = UsableCores();
  if (const MachineFacts::Folder shared = ReadFolder("/dev/shm"); shared.error.empty()) {
    facts.shared_memory_bytes = shared.bytes;
  }
  const bool stays = NumberIn("/proc/sys/net/ipv4/tcp_moderate_rcvbuf") == uint64_t{0};
  facts.receive_buffer_bytes = ReadSocketBuffer(
      TextOf("/proc/sys/net/ipv4/tcp_rmem"), stays ? BufferGrowth::kStays : BufferGrowth::kGrows);
  facts.send_buffer_bytes =
      ReadSocketBuffer(TextOf("/proc/sys/net/ipv4/tcp_wmem"), BufferGrowth::kGrows);
  for (const std::string& path : question.folders) facts.folders.push_back(ReadFolder(path));
  for (const std::string& folder : question.credentials) {
    facts.credentials.push_back(ReadCredentials(folder, wall_now));
  }
  return facts;
}

}  // namespace covey::cli
