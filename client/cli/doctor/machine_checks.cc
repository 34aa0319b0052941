// SPDX-License-Identifier: Apache-2.0
#include "client/cli/doctor/machine_checks.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/cli/certificates/certificates_view.h"
#include "client/cli/console/figures.h"
#include "common/base/version.h"

namespace covey::cli {
namespace {

using Level = Finding::Level;

// A connection, or two, for each pair of loops; and what strangers may hold open.
constexpr uint64_t kOpenFilesWanted = 16384;
constexpr uint64_t kOpenFilesNeeded = 1024;
constexpr uint64_t kSharedMemoryWanted = uint64_t{256} << 20;
// 10 Gbit/s over a round trip of 1 ms are 1.25 MB under way, for which the kernel takes about half
// of a buffer.
constexpr uint64_t kSocketBufferWanted = 2'500'000;
// Certificates of processes last a week, and are renewed daily.
constexpr absl::Duration kExpiresSoon = absl::Hours(48);

void CheckClock(const MachineFacts& facts, Findings& findings) {
  if (!facts.clock_is_synchronized.has_value()) return;
  if (*facts.clock_is_synchronized) {
    findings.push_back({.check = "clock", .seen = "synchronized"});
    return;
  }
  findings.push_back({.level = Level::kWarning,
                      .check = "clock",
                      .seen = "the kernel does not know its clock to be synchronized, and "
                              "certificates are valid by the clock",
                      .remedy = "start chrony or systemd-timesyncd"});
}

void CheckOpenFiles(const MachineFacts& facts, Findings& findings) {
  if (!facts.open_files_max.has_value()) return;
  const uint64_t limit = *facts.open_files_max;
  Finding finding{.check = "open-files",
                  .seen = absl::StrCat("at most ", ShowCount(limit), " open files and sockets")};
  if (limit < kOpenFilesWanted) {
    finding.level = limit < kOpenFilesNeeded ? Level::kFailure : Level::kWarning;
    finding.remedy =
        "raise the hard limit: LimitNOFILE=65536 in a unit, ulimit -Hn, --ulimit "
        "nofile of a container";
  }
  findings.push_back(finding);
}

void CheckMemory(const MachineFacts& facts, const MachineNeeds& needs, Findings& findings) {
  if (!facts.free_memory_bytes.has_value()) return;
  const uint64_t of_group = facts.group_memory_bytes.value_or(*facts.free_memory_bytes);
  const bool is_group = of_group < *facts.free_memory_bytes;
  const uint64_t free_bytes = std::min(of_group, *facts.free_memory_bytes);
  Finding finding{.check = "memory",
                  .seen = absl::StrCat(ShowBytes(free_bytes), " free",
                                       is_group ? " below the limit of the control group" : "")};
  if (free_bytes < needs.memory_bytes) {
    finding.level = Level::kFailure;
    absl::StrAppend(&finding.seen, ", and ", ShowBytes(needs.memory_bytes), " are to be");
    finding.remedy = is_group ? "raise the limit of the control group: MemoryMax= of a unit, "
                                "--memory of a container, limits of a pod"
                              : "add servers on other hosts, or end other programs here";
  }
  findings.push_back(finding);
}

void CheckFolders(const MachineFacts& facts, const MachineNeeds& needs, Findings& findings) {
  for (const MachineFacts::Folder& folder : facts.folders) {
    Finding finding{.check = "disk"};
    if (!folder.error.empty()) {
      finding.level = Level::kFailure;
      finding.seen = absl::StrCat(folder.path, " cannot be written: ", folder.error);
      finding.remedy = "make the folder, and give it to the user of the process";
    } else {
      finding.seen = absl::StrCat(folder.path, ": ", ShowBytes(folder.free_bytes), " of ",
                                  ShowBytes(folder.bytes), " free");
      if (folder.free_bytes < needs.disk_bytes) {
        finding.level = Level::kFailure;
        absl::StrAppend(&finding.seen, ", and ", ShowBytes(needs.disk_bytes), " are to be");
        finding.remedy = "free room there, or keep fewer snapshots (--snapshots-kept)";
      }
    }
    findings.push_back(finding);
  }
}

void CheckHugePages(const MachineFacts& facts, Findings& findings) {
  if (!facts.huge_pages.has_value()) return;
  Finding finding{.check = "huge-pages",
                  .seen = absl::StrCat("transparent huge pages: ", *facts.huge_pages)};
  if (*facts.huge_pages == "never") {
    finding.level = Level::kWarning;
    absl::StrAppend(&finding.seen, ", so that the first touch of tables is several times slower");
    finding.remedy = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
  }
  findings.push_back(finding);
}

void CheckCores(const MachineFacts& facts, Findings& findings) {
  Finding finding{.check = "cpu", .seen = absl::StrCat(facts.cores, " cores")};
  if (facts.cpu_quota.has_value() && *facts.cpu_quota < facts.cores) {
    finding.level = Level::kWarning;
    finding.seen = absl::StrFormat(
        "the control group allows %.3g of %d cores, and stops processes that take more",
        *facts.cpu_quota, facts.cores);
    finding.remedy = absl::StrFormat(
        "raise the quota of the control group (CPUQuota= of a unit, --cpus of a container, limits "
        "of a pod), or start servers with --loops %d",
        std::max(1, static_cast<int>(*facts.cpu_quota)));
  }
  findings.push_back(finding);
}

void CheckSharedMemory(const MachineFacts& facts, Findings& findings) {
  if (!facts.shared_memory_bytes.has_value()) return;
  Finding finding{.check = "namespaces",
                  .seen = absl::StrCat("/dev/shm has ", ShowBytes(*facts.shared_memory_bytes))};
  if (*facts.shared_memory_bytes < kSharedMemoryWanted) {
    finding.level = Level::kWarning;
    absl::StrAppend(&finding.seen, ", which data loaders of PyTorch soon fill");
    finding.remedy = "--shm-size 1g of a container, or an emptyDir of medium Memory in a pod";
  }
  findings.push_back(finding);
}

void CheckSocketBuffers(const MachineFacts& facts, Findings& findings) {
  const std::pair<absl::string_view, std::optional<uint64_t>> buffers[] = {
      {"tcp_rmem", facts.receive_buffer_bytes}, {"tcp_wmem", facts.send_buffer_bytes}};
  std::vector<std::string> seen;
  std::vector<std::string> small;
  for (const auto& [setting, bytes] : buffers) {
    if (!bytes.has_value()) continue;
    seen.push_back(
        absl::StrCat("net.ipv4.", setting, " lets a connection hold ", ShowBytes(*bytes)));
    if (*bytes < kSocketBufferWanted) small.push_back(absl::StrCat("net.ipv4.", setting));
  }
  if (seen.empty()) return;
  Finding finding{.check = "socket-buffers", .seen = absl::StrJoin(seen, ", ")};
  if (!small.empty()) {
    finding.level = Level::kWarning;
    absl::StrAppend(&finding.seen, ", too little for 10 Gbit/s over a round trip of 1 ms");
    finding.remedy =
        absl::StrCat("raise them, and leave net.ipv4.tcp_moderate_rcvbuf at 1: sysctl -w '",
                     absl::StrJoin(small, "=4096 131072 6291456' '"), "=4096 131072 6291456'");
  }
  findings.push_back(finding);
}

void CheckCredentials(const MachineFacts& facts, Findings& findings) {
  for (const MachineFacts::Credentials& credentials : facts.credentials) {
    Finding finding{.check = "certificates"};
    if (!credentials.problems.empty()) {
      finding.level = Level::kFailure;
      finding.seen = credentials.problems[0];
      finding.remedy = absl::StrCat("see all of it: covey certificates show ", credentials.folder);
    } else {
      const absl::Duration left = credentials.left.value_or(absl::ZeroDuration());
      finding.seen = absl::StrCat(credentials.folder, ": valid, left: ", ShowLeft(left));
      if (left < kExpiresSoon) {
        finding.level = Level::kWarning;
        finding.remedy = "renew it: covey certificates issue, with the same --out";
      }
    }
    findings.push_back(finding);
  }
}

}  // namespace

Findings CheckMachine(const MachineFacts& facts, const MachineNeeds& needs) {
  Findings findings = {{.check = "version", .seen = absl::StrCat("covey ", kVersion)}};
  CheckClock(facts, findings);
  CheckOpenFiles(facts, findings);
  CheckMemory(facts, needs, findings);
  CheckCores(facts, findings);
  CheckHugePages(facts, findings);
  CheckSharedMemory(facts, findings);
  CheckSocketBuffers(facts, findings);
  CheckFolders(facts, needs, findings);
  CheckCredentials(facts, findings);
  return findings;
}

}  // namespace covey::cli
