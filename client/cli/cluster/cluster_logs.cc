// SPDX-License-Identifier: Apache-2.0
#include "client/cli/cluster/cluster_logs.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/cli/cluster/cluster_plan.h"
#include "client/cli/cluster/ssh_commands.h"
#include "client/cli/console/terminal.h"
#include "client/cli/process/child_output.h"
#include "client/cli/process/child_process.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_value.h"
#include "common/runtime/process_main.h"

namespace covey::cli {
namespace {

using Stream = ChildProcess::Stream;

constexpr int kLookMs = 100;
constexpr int kSshFailed = 255;
constexpr absl::Duration kPrintDeadline = absl::Minutes(2);

// The logs of one host.
struct Source {
  std::string host;
  std::unique_ptr<ChildProcess> child;
  std::unique_ptr<LogLines> lines;
  std::unique_ptr<ChildOutput> output;
};

absl::StatusOr<std::map<size_t, std::set<std::string>>> Select(
    const ClusterFile& file, const std::vector<std::string>& names) {
  std::map<size_t, std::set<std::string>> selected;
  std::vector<std::string> known;
  for (const PlannedProcess& each : PlanProcesses(file)) {
    known.push_back(each.name);
    if (names.empty() || std::find(names.begin(), names.end(), each.name) != names.end()) {
      selected[each.host].insert(each.name);
    }
  }
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return absl::NotFoundError(absl::StrCat(file.path, " has no process ", name, "; did you mean ",
                                            NearestName(name, known), "?"));
  }
  return selected;
}

class Logs {
 public:
  Logs(const ClusterFile& file, const LogsOrder& order)
      : file_(file), order_(order), commands_(file, "") {}

  absl::Status Run(const std::map<size_t, std::set<std::string>>& selected) {
    if (order_.is_followed && selected.size() > file_.ssh.at_once) {
      return absl::InvalidArgumentError(
          absl::StrCat("these processes are on ", selected.size(), " hosts, and at most ",
                       file_.ssh.at_once, " can be followed; name some of the processes"));
    }
    auto next = selected.begin();
    absl::Status failure;
    while (next != selected.end() || !sources_.empty()) {
      while (next != selected.end() && sources_.size() < file_.ssh.at_once) {
        COVEY_RETURN_IF_ERROR(Add(next->first, next->second));
        ++next;
      }
      Await();
      std::erase_if(sources_, [&](Source& source) { return HasEnded(source, failure); });
      if (WaitForTermination(absl::ZeroDuration()).has_value()) return absl::OkStatus();
    }
    return failure;
  }

 private:
  absl::Status Add(size_t host, const std::set<std::string>& names) {
    const ClusterFile::Host& of = file_.hosts[host];
    const std::vector<std::string> listed(names.begin(), names.end());
    Source source;
    source.host = absl::StrCat(of.at, ": host ", of.name);
    COVEY_ASSIGN_OR_RETURN(
        source.child, ChildProcess::Start(
                          {.name = of.name,
                           .arguments = commands_.Run(host, LogsScript(of.folder, listed, order_)),
                           .environment = {}}));
    source.lines = std::make_unique<LogLines>(names);
    source.output = std::make_unique<ChildOutput>(
        *source.child, nullptr, [this, &lines = *source.lines](Stream stream, auto line) {
          if (stream == Stream::kError) {
            terminal_.Print(Terminal::Stream::kError, line);
            return;
          }
          for (const auto& [name, text] : lines.Take(line)) {
            terminal_.Print(Terminal::Stream::kOutput, name, text);
          }
        });
    sources_.push_back(std::move(source));
    return absl::OkStatus();
  }

  void Await() {
    std::vector<pollfd> polled;
    for (const Source& source : sources_) {
      for (const Stream stream : {Stream::kOutput, Stream::kError}) {
        polled.push_back({.fd = source.child->descriptor(stream), .events = POLLIN, .revents = 0});
      }
    }
    poll(polled.data(), polled.size(), kLookMs);
    for (Source& source : sources_) {
      for (const Stream stream : {Stream::kOutput, Stream::kError}) source.output->Read(stream);
    }
  }

  bool HasEnded(Source& source, absl::Status& failure) {
    if (!order_.is_followed && MonotonicNow() > until_) source.child->Signal(SIGKILL);
    const auto exit = source.child->Reap();
    if (!exit.has_value()) return false;
    source.output->Finish();
    if (exit->code == kSshFailed || exit->signal != 0) {
      failure = absl::UnavailableError(absl::StrCat(
          source.host, " is not reached: ", absl::StrJoin(source.output->last_lines(), " | "),
          "; try: covey cluster status ", file_.path));
    }
    return true;
  }

  const ClusterFile& file_;
  const LogsOrder order_;
  const SshCommands commands_;
  const absl::Time until_ = MonotonicNow() + kPrintDeadline;
  Terminal terminal_;
  std::vector<Source> sources_;
};

}  // namespace

std::vector<std::pair<std::string, std::string>> LogLines::Take(absl::string_view line) {
  if (const std::string head(LogHead(line)); names_.contains(head)) {
    name_ = head;
    has_empty_ = false;
    return {};
  }
  std::vector<std::pair<std::string, std::string>> lines;
  if (has_empty_) lines.emplace_back(name_, "");
  has_empty_ = line.empty();
  if (!has_empty_ && !name_.empty()) lines.emplace_back(name_, line);
  return lines;
}

absl::Status PrintLogs(const ClusterFile& file, const std::vector<std::string>& names,
                       const LogsOrder& order) {
  COVEY_ASSIGN_OR_RETURN(const auto selected, Select(file, names));
  return Logs(file, order).Run(selected);
}

}  // namespace covey::cli
