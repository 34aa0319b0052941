// SPDX-License-Identifier: Apache-2.0
#include "client/cli/cluster/cluster_options.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cli/scheduler/scheduler_options.h"

namespace covey::cli {
namespace {

using Action = ClusterOptions::Action;

constexpr char kHow[] =
    "write up HOSTS.yaml, status HOSTS.yaml, down HOSTS.yaml or logs HOSTS.yaml [NAME...]";
constexpr uint32_t kLinesMax = 100000;

constexpr std::pair<absl::string_view, Action> kActions[] = {{"up", Action::kUp},
                                                             {"status", Action::kStatus},
                                                             {"down", Action::kDown},
                                                             {"logs", Action::kLogs}};

// Which action takes a flag.
struct FlagUse {
  absl::string_view flag;
  absl::string_view action;
};
constexpr FlagUse kFlags[] = {{"dry-run", "up"},  {"deadline", "down"}, {"kill", "down"},
                              {"follow", "logs"}, {"lines", "logs"},    {"output", "status"}};

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

}  // namespace

void ClusterOptions::AddTo(ConfigFile& options) {
  options.Add("dry-run", &dry_run, "up: print what would be run, and run nothing");
  options.Add("deadline", &deadline,
              "down: how long to wait for workers, then for servers, then for the scheduler");
  options.Add("kill", &kill, "down: kill what has not ended by then");
  options.Add("follow", &follow, "logs: go on as the logs grow, until Ctrl-C");
  options.Add("lines", &lines, "logs: lines of each process to begin with");
  AddOutput(options, &json);
  options.TakeRest(&words_,
                   "up HOSTS.yaml | status HOSTS.yaml | down HOSTS.yaml | logs HOSTS.yaml [NAME...]"
                   "   NAME: of a process, as in server-0");
}

absl::Status ClusterOptions::Check(const ConfigFile& options) {
  if (words_.empty()) return Wrong(absl::StrCat("what is to be done? ", kHow));
  const auto found = std::find_if(std::begin(kActions), std::end(kActions),
                                  [this](const auto& known) { return known.first == words_[0]; });
  if (found == std::end(kActions)) {
    return Wrong(absl::StrCat("nothing named '", words_[0], "'; ", kHow));
  }
  action = found->second;
  for (const auto& [flag, only] : kFlags) {
    if (absl::StartsWith(options.OriginOf(flag), "flag") && only != words_[0]) {
      return Wrong(absl::StrCat(words_[0], " takes no --", flag, "; only ", only, " does"));
    }
  }
  if (words_.size() < 2 || (words_.size() > 2 && action != Action::kLogs)) {
    return Wrong(
        absl::StrCat(words_[0], " takes one file, and ", words_.size() - 1, " are given; ", kHow));
  }
  file = words_[1];
  names.assign(words_.begin() + 2, words_.end());
  if (deadline < absl::Seconds(1) || deadline > absl::Hours(24)) {
    return Wrong(
        absl::StrCat("--deadline is ", absl::FormatDuration(deadline), "; give 1s to 24h"));
  }
  if (lines > kLinesMax) {
    return Wrong(absl::StrCat("--lines is ", lines, "; give 0 to ", kLinesMax));
  }
  return absl::OkStatus();
}

}  // namespace covey::cli
