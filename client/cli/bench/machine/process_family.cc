// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/machine/process_family.h"

#include <dirent.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/bench/machine/proc_text.h"
#include "client/cli/console/text_file.h"

namespace covey::cli {
namespace {

std::string FileOf(pid_t process, absl::string_view name) {
  const auto text = ReadTextFile(absl::StrCat("/proc/", process, "/", name));
  return text.ok() ? *text : "";
}

// The entries of a folder that are numbers: processes of /proc, threads of /proc/PID/task.
std::vector<pid_t> NumbersIn(const std::string& path) {
  std::vector<pid_t> numbers;
  DIR* folder = opendir(path.c_str());
  if (folder == nullptr) return numbers;
  while (const dirent* entry = readdir(folder)) {
    pid_t number = 0;
    if (absl::SimpleAtoi(entry->d_name, &number)) numbers.push_back(number);
  }
  closedir(folder);
  return numbers;
}

std::string ProgramOf(pid_t process) {
  char path[4096];
  const ssize_t size =
      readlink(absl::StrCat("/proc/", process, "/exe").c_str(), path, sizeof(path));
  return std::string(path, size > 0 ? static_cast<size_t>(size) : 0);
}

uint64_t PssOf(pid_t process) { return ReadPss(FileOf(process, "smaps_rollup")).value_or(0); }

void AddUsage(pid_t process, Usage& usage) {
  static const auto kTicksPerSecond = static_cast<double>(sysconf(_SC_CLK_TCK));
  const std::optional<ProcessLine> line = ReadProcessLine(FileOf(process, "stat"));
  if (!line.has_value()) return;
  usage.user_seconds += static_cast<double>(line->user) / kTicksPerSecond;
  usage.system_seconds += static_cast<double>(line->system) / kTicksPerSecond;
  usage.page_faults += line->page_faults;
  for (const pid_t thread : NumbersIn(absl::StrCat("/proc/", process, "/task"))) {
    const std::string status = FileOf(process, absl::StrCat("task/", thread, "/status"));
    usage.context_switches += ReadContextSwitches(status).value_or(0);
  }
}

}  // namespace

ProcessFamily::ProcessFamily(std::vector<pid_t> servers) : servers_(std::move(servers)) {
  roots_ = servers_;
  // `covey bench` starts this process through a cluster of its own, of which the scheduler is part.
  const bool started_by_itself = ProgramOf(getppid()) == ProgramOf(getpid());
  roots_.push_back(started_by_itself ? getppid() : getpid());
}

Usage ProcessFamily::ReadUsage() const {
  Usage usage;
  AddUsage(getpid(), usage);
  for (const pid_t server : servers_) AddUsage(server, usage);
  return usage;
}

void ProcessFamily::ReadMemory(Cost& cost) const {
  cost.client_pss_bytes = PssOf(getpid());
  cost.server_pss_bytes = 0;
  for (const pid_t server : servers_) cost.server_pss_bytes += PssOf(server);
}

MachineTicks ProcessFamily::ReadTicks() const {
  MachineTicks ticks;
  const auto machine = ReadTextFile("/proc/stat");
  const std::optional<CpuLine> cpu = machine.ok() ? ReadCpuLine(*machine) : std::nullopt;
  if (!cpu.has_value()) return ticks;
  ticks = {.total = cpu->total, .busy = cpu->busy, .steal = cpu->steal};
  std::map<pid_t, ProcessLine> lines;
  std::multimap<pid_t, pid_t> children;
  for (const pid_t process : NumbersIn("/proc")) {
    const std::optional<ProcessLine> line = ReadProcessLine(FileOf(process, "stat"));
    if (!line.has_value()) continue;
    lines[process] = *line;
    children.emplace(line->parent, process);
  }
  std::set<pid_t> family;
  std::vector<pid_t> open = roots_;
  while (!open.empty()) {
    const pid_t process = open.back();
    open.pop_back();
    if (!family.insert(process).second) continue;
    const auto line = lines.find(process);
    if (line != lines.end()) {
      ticks.own += line->second.user + line->second.system + line->second.children;
    }
    const auto [begin, end] = children.equal_range(process);
    for (auto child = begin; child != end; ++child) open.push_back(child->second);
  }
  return ticks;
}

}  // namespace covey::cli
