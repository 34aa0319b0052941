// SPDX-License-Identifier: Apache-2.0
#include "client/cli/cluster/cluster_options.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cli/console/actions.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "common/base/status_macros.h"

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
  COVEY_ASSIGN_OR_RETURN(action, FindAction(words_, kActions, kHow));
  COVEY_RETURN_IF_ERROR(CheckFlags(options, words_[0], kFlags));
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
