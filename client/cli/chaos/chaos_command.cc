// SPDX-License-Identifier: Apache-2.0
#include "client/cli/chaos/chaos_command.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cli/chaos/experiment_context.h"
#include "client/cli/chaos/experiments.h"
#include "client/cli/chaos/forward_command.h"
#include "client/cli/chaos/verdict.h"
#include "client/cli/console/command.h"
#include "client/cli/console/text_file.h"
#include "client/cli/run/plan/binaries.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "common/base/edit_distance.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"

namespace covey::cli {
namespace {

struct Experiment {
  const char* name;
  const char* summary;
  absl::StatusOr<Verdict> (*run)(const ExperimentContext& context);
  bool has_workers;
};

constexpr Experiment kExperiments[] = {
    {"kill-server", "one of three servers dies: how soon do pushes succeed, is any lost?",
     KillServer, false},
    {"partition", "a server is cut off and comes back: is any push lost, does it recover?",
     PartitionServer, false},
    {"restart-scheduler", "the scheduler dies and comes back: are pushes affected?",
     RestartScheduler, false},
    {"freeze-worker", "a worker hangs: how soon does its group continue, are others affected?",
     FreezeWorker, true},
    {"kill-group", "a whole group dies: are others affected?", KillGroup, true},
};

std::string Description() {
  std::string text =
      "Starts a small cluster on this machine, injects a fault while it works, and shows on one "
      "screen the promises and the measurements. Takes less than a minute. Exit code: 0 all "
      "promises kept, 1 one was broken or the experiment failed. Experiments:\n";
  for (const Experiment& experiment : kExperiments) {
    absl::StrAppend(&text, "  ", experiment.name, ": ", experiment.summary, "\n");
  }
  return text;
}

absl::StatusOr<const Experiment*> FindExperiment(const std::vector<std::string>& words) {
  if (words.size() != 1) {
    return absl::InvalidArgumentError(
        "which experiment? One of kill-server, partition, restart-scheduler, freeze-worker, "
        "kill-group");
  }
  for (const Experiment& experiment : kExperiments) {
    if (words[0] == experiment.name) return &experiment;
  }
  const Experiment* const nearest =
      std::min_element(std::begin(kExperiments), std::end(kExperiments),
                       [&](const Experiment& a, const Experiment& b) {
                         return EditDistance(a.name, words[0]) < EditDistance(b.name, words[0]);
                       });
  return absl::InvalidArgumentError(
      absl::StrCat("no experiment '", words[0], "'; did you mean ", nearest->name, "?"));
}

absl::StatusOr<ExperimentContext> MakeLaboratory(const RunOptions& options,
                                                 const Experiment& experiment,
                                                 const std::string& worker_binary) {
  ExperimentContext context;
  COVEY_ASSIGN_OR_RETURN(context.binaries, FindBinaries(options));
  if (experiment.has_workers) {
    COVEY_ASSIGN_OR_RETURN(context.worker_binary, FindSynthetic(worker_binary));
  }
  context.say = [](absl::string_view line) {
    WriteAll(STDERR_FILENO, absl::StrCat("covey chaos: ", line, "\n"));
  };
  return context;
}

}  // namespace

int ChaosCommand(int count, const char* const* arguments) {
  if (count > 1 && absl::string_view(arguments[1]) == "forward") {
    return ForwardCommand(count - 1, arguments + 1);
  }
  RunOptions options;
  std::string worker_binary;
  std::vector<std::string> words;
  bool json = false;
  ConfigFile file("covey chaos", Description());
  AddOutput(file, &json);
  file.Add("scheduler-binary", &options.scheduler_binary,
           "scheduler; default: the one beside covey");
  file.Add("server-binary", &options.server_binary, "server; default: the one beside covey");
  file.Add("worker-binary", &worker_binary,
           "the example 'synthetic'; default: the one beside covey");
  file.TakeRest(&words, "EXPERIMENT");
  if (const auto code = LoadWithShortOutput(file, count, arguments)) return *code;
  const absl::StatusOr<const Experiment*> experiment = FindExperiment(words);
  if (!experiment.ok()) {
    PrintFailure(arguments[0], experiment.status());
    return kExitUsage;
  }
  const absl::StatusOr<ExperimentContext> context =
      MakeLaboratory(options, **experiment, worker_binary);
  if (!context.ok()) {
    PrintFailure(arguments[0], context.status());
    return kExitUsage;
  }
  const absl::StatusOr<Verdict> verdict = (*experiment)->run(*context);
  if (!verdict.ok()) {
    PrintFailure(arguments[0], verdict.status());
    return kExitFailed;
  }
  WriteAll(STDOUT_FILENO, json ? VerdictJson(*verdict) : VerdictText(*verdict));
  return verdict->kept() ? kExitOk : kExitFailed;
}

}  // namespace covey::cli
