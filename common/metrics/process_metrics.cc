// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/process_metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/descriptor.h"
#include "common/base/version.h"
#include "common/net/seal/refusal.h"
#include "common/security/node_credentials.h"

namespace covey {
namespace {

// Of a file of /proc, which is short.
std::string TextOf(const char* path) {
  const Descriptor file(open(path, O_RDONLY | O_CLOEXEC));
  std::string text(16 << 10, '\0');
  const ssize_t size = file.open() ? read(file.number(), text.data(), text.size()) : 0;
  text.resize(size < 0 ? 0 : static_cast<size_t>(size));
  return text;
}

// When the system has started, in seconds since 1970.
std::optional<double> BootTime() {
  for (absl::string_view line : absl::StrSplit(TextOf("/proc/stat"), '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    double seconds = 0;
    if (words.size() == 2 && words[0] == "btime" && absl::SimpleAtod(words[1], &seconds)) {
      return seconds;
    }
  }
  return std::nullopt;
}

std::optional<double> OpenFiles() {
  const auto close = [](DIR* folder) { closedir(folder); };
  const std::unique_ptr<DIR, decltype(close)> folder(opendir("/proc/self/fd"), close);
  if (folder == nullptr) return std::nullopt;
  double count = -3;  // the folder's own descriptor, and its entries . and ..
  while (readdir(folder.get()) != nullptr) ++count;
  return count;
}

}  // namespace

void AddProcessMetrics(absl::string_view role, MetricPage& page) {
  page.Gauge("covey_build_info", "Always 1; the version is in a label.", 1,
             {{"role", std::string(role)}, {"version", kVersion}});
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  page.Counter("process_cpu_seconds_total", "Time of processors that the process has used.",
               seconds(usage.ru_utime) + seconds(usage.ru_stime));
  // Field 22 is the start, counted from the end of the name, which may hold anything.
  const std::string stat = TextOf("/proc/self/stat");
  const std::vector<std::string> fields = absl::StrSplit(stat.substr(stat.rfind(')') + 1), ' ');
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  double start = 0;
  const std::optional<double> boot = BootTime();
  if (boot && fields.size() > 22 && absl::SimpleAtod(fields[20], &start)) {
    page.Gauge("process_start_time_seconds", "When the process started, since 1970.",
               *boot + start / ticks);
  }
  double pages = 0;
  if (fields.size() > 22 && absl::SimpleAtod(fields[22], &pages)) {
    page.Gauge("process_resident_memory_bytes", "Memory that the process holds.",
               pages * static_cast<double>(sysconf(_SC_PAGESIZE)));
  }
  if (const std::optional<double> open = OpenFiles()) {
    page.Gauge("process_open_fds", "Open files and sockets.", *open);
  }
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    page.Gauge("process_max_fds", "Files and sockets that may be open.",
               static_cast<double>(files.rlim_cur));
  }
}

void AddCertificateMetrics(const std::string& folder, absl::Time wall_now, MetricPage& page) {
  const NodeFolderReport report = InspectNodeFolder(folder, wall_now);
  const absl::Time expiry =
      report.problems.empty() ? report.Expiry().value_or(absl::UnixEpoch()) : absl::UnixEpoch();
  page.Gauge("covey_certificate_expiry_timestamp_seconds",
             "When the certificate of the process expires, since 1970; 0 = it is of no use.",
             static_cast<double>(absl::ToUnixSeconds(expiry)));
}

void AddBusyTime(absl::Duration busy, MetricPage& page) {
  page.Counter("covey_loop_busy_seconds_total", "Time that loops of the process were at work.",
               absl::ToDoubleSeconds(busy));
}

void AddMessageMetrics(const TransportCounters& counters, MetricPage& page) {
  constexpr char kMessages[] = "covey_messages_total";
  constexpr char kRefused[] = "covey_messages_refused_total";
  constexpr char kMessagesHelp[] = "Messages of the data plane.";
  constexpr char kRefusedHelp[] =
      "Messages that were refused, or dropped because the peer is unknown or its queue full.";
  page.Counter(kMessages, kMessagesHelp, static_cast<double>(counters.received),
               {{"direction", "received"}});
  page.Counter(kMessages, kMessagesHelp, static_cast<double>(counters.sent),
               {{"direction", "sent"}});
  for (size_t i = 0; i < kRefusalNames.size(); ++i) {
    page.Counter(kRefused, kRefusedHelp, static_cast<double>(counters.refused.all()[i]),
                 {{"reason", std::string(kRefusalNames[i])}});
  }
  page.Counter(kRefused, kRefusedHelp, static_cast<double>(counters.dropped),
               {{"reason", "dropped"}});
}

}  // namespace covey
