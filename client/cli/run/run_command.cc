// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/run_command.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/console/command.h"
#include "client/cli/console/terminal.h"
#include "client/cli/console/text_file.h"
#include "client/cli/process/child_process.h"
#include "client/cli/report/report.h"
#include "client/cli/run/local_cluster.h"
#include "client/cli/run/plan/binaries.h"
#include "client/cli/run/plan/run_options.h"
#include "client/cli/run/run_result.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "client/cli/status/at_risk.h"
#include "common/base/status_macros.h"
#include "common/faults/fault_file.h"
#include "common/grouping/group_count.h"
#include "common/runtime/config_file.h"
#include "common/runtime/process_main.h"
#include "common/snapshot/snapshot_reader.h"
#include "common/store/disk_folder.h"

namespace covey::cli {
namespace {

// The flags from which the fault plan is made.
struct FaultChoices {
  std::string faults_file;
  FaultPlan kills;
  std::string kills_text;
};

absl::Status TakeFaults(const FaultChoices& choices, RunOptions& options) {
  if (!choices.faults_file.empty()) {
    COVEY_ASSIGN_OR_RETURN(options.faults, LoadFaultPlan(choices.faults_file));
  }
  options.faults.insert(options.faults.end(), choices.kills.begin(), choices.kills.end());
  return absl::OkStatus();
}

void AddTo(ConfigFile& file, RunOptions& options, FaultChoices& choices) {
  file.Add("servers", &options.servers, "servers to start");
  file.Add(
      "groups",
      [&options](absl::string_view text) {
        return ParseGroupCount(text, options.groups, options.plans_groups);
      },
      [&options] { return options.Groups(); },
      "groups of workers; auto = the scheduler chooses, by what it measures");
  file.Add("workers", &options.workers_per_group,
           "workers in each group; with --groups auto, all workers");
  file.Add("transport", &options.transport, "how tensors travel: auto (shared memory), tcp or ipc");
  file.Add("server-loops", &options.server_loops, "data loops of each server; 0 = its default");
  file.Add(
      "stragglers",
      [&options](absl::string_view text) -> absl::Status {
        COVEY_ASSIGN_OR_RETURN(options.stragglers, ParseStragglerRung(text));
        return absl::OkStatus();
      },
      [&options] { return std::string(StragglerRungName(options.stragglers)); },
      "strongest measure against slow workers: off, observe, shift, partial, regroup or evict");
  file.Add("job", &options.job, "the job's name");
  file.Add(
      "on-failure",
      [&options](absl::string_view text) -> absl::Status {
        COVEY_ASSIGN_OR_RETURN(options.on_failure, ParseOnFailure(text));
        return absl::OkStatus();
      },
      [&options] { return std::string(OnFailureName(options.on_failure)); },
      "when a server or worker dies: continue without it, restart it, or stop everything");
  file.Add("faults", &choices.faults_file,
           "file of faults to inject: kill, stop and restart (common/faults/fault_file.h); times "
           "count from the first step");
  file.Add(
      "kill",
      [&choices](absl::string_view text) -> absl::Status {
        COVEY_ASSIGN_OR_RETURN(choices.kills, ParseKills(text));
        choices.kills_text = std::string(text);
        return absl::OkStatus();
      },
      [&choices] { return choices.kills_text; },
      "processes to kill, NODE@TIME,...: server-0@10s,worker-1@15s");
  file.Add("timeout", &options.timeout, "abort the run after this duration");
  file.Add("grace", &options.grace, "time from SIGTERM to SIGKILL for a process that does not end");
  file.Add("report", &options.report_file, "write one HTML page with curves to this file");
  file.Add("json", &options.json_file, "write result and history to this JSON file");
  file.Add("events", &options.events_folder,
           "while the run goes on, write its curves to this folder, for TensorBoard; take a new "
           "folder for each run");
  file.Add("export", &options.export_file,
           "when the programs have ended well, write the model to this safetensors file; a .npy "
           "file where it is one table; see covey export");
  file.Add("store", &options.store,
           "folder for snapshots of the job; one is made when the run ends, so that another run "
           "can go on from there");
  file.Add("snapshot-every", &options.snapshot_every,
           "with --store: how often a snapshot is made meanwhile: 10min, 1e6samples, or both with "
           "a comma between");
  file.Add(
      "feedback-flush-steps", &options.feedback_flush_steps,
      "with --store: at each multiple of this step (100), gradients with error feedback travel "
      "as float32 with all that was kept, and snapshots of bsp and ssp tables are cut there");
  file.Add("tls", &options.tls,
           "folder with the certificates of all roles (covey certificates issue --every-role): the "
           "processes show each other theirs, and encrypt what they send");
  file.Add("durability", &options.durability,
           "what the run may lose: memory (what only servers hold is lost with them), replicated "
           "(every table has two replicas or more), or flushed:2s (with --store: all updates are "
           "in the store about 2 s after they were applied)");
  file.Add("on-loss", &options.on_loss,
           "what happens to a shard whose servers have all died: restore (the default: it begins "
           "with its part of the newest snapshot), begin-anew (it begins with the table's first "
           "values) or stop (the run ends)");
  file.Add("snapshots-kept", &options.snapshots_kept,
           "with --store: complete snapshots that stay there (3); older ones are removed");
  file.Add("resume", &options.resume,
           "with --store: begin with a snapshot: latest, its id or its name; if-any = the latest, "
           "or anew where there is none");
  file.Add(
      "initial-values", &options.initial_values,
      "with --store: SNAPSHOT[,TABLE...] with whose values new tables begin; see covey snapshot "
      "import");
  file.Add("record", &options.record_folder,
           "record in this new folder what the servers apply, in which order; see covey replay");
  file.Add("record-gradients", &options.record_gradients,
           "record the gradients, too; without them a recording shows the order alone");
  file.Add("log-dir", &options.log_folder, "folder for the output of the processes, one file each");
  file.Add("scheduler-binary", &options.scheduler_binary,
           "scheduler; default: the one beside covey");
  file.Add("server-binary", &options.server_binary, "server; default: the one beside covey");
  file.TakeRest(&options.program,
                "-- PROGRAM [ARGUMENT...]   the program of each worker, with its options");
}

// A recording is all files of its folder.
absl::Status CheckEmpty(const std::string& record_folder) {
  COVEY_RETURN_IF_ERROR(MakeFolder(record_folder));
  COVEY_ASSIGN_OR_RETURN(const auto folder,
                         DiskFolder::Open(record_folder, DiskFolder::Missing::kIsError));
  COVEY_ASSIGN_OR_RETURN(const std::vector<FolderEntry> entries, folder->List(""));
  if (entries.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--record ", record_folder, ": the folder is not empty; take a new one for each run"));
}

absl::StatusOr<LocalPaths> Check(const RunOptions& options) {
  COVEY_RETURN_IF_ERROR(options.Validate());
  COVEY_RETURN_IF_ERROR(FindProgram(options.program[0]).status());
  for (const std::string& file : {options.report_file, options.json_file, options.export_file}) {
    if (!file.empty()) COVEY_RETURN_IF_ERROR(CheckWritable(file));
  }
  if (!options.record_folder.empty()) COVEY_RETURN_IF_ERROR(CheckEmpty(options.record_folder));
  COVEY_ASSIGN_OR_RETURN(LocalPaths paths, FindBinaries(options));
  if (!options.events_folder.empty()) {
    COVEY_RETURN_IF_ERROR(MakeFolder(options.events_folder));
    COVEY_RETURN_IF_ERROR(CheckWritable(absl::StrCat(options.events_folder, "/group")));
  }
  return paths;
}

absl::Status WriteFiles(const RunOptions& options, const RunOutcome& outcome) {
  if (!options.report_file.empty()) {
    const std::string date =
        absl::FormatTime("%Y-%m-%d %H:%M:%S %z", absl::Now(), absl::LocalTimeZone());
    COVEY_RETURN_IF_ERROR(
        WriteTextFile(options.report_file, RenderReport(MakeReport(options, outcome, date))));
  }
  if (!options.json_file.empty()) {
    COVEY_RETURN_IF_ERROR(WriteTextFile(options.json_file, ResultFile(options, outcome)));
  }
  return absl::OkStatus();
}

// Where the run can go on from; empty = there is no snapshot.
std::string SnapshotLine(const std::string& store, const proto::AtRisk& at_risk) {
  if (store.empty()) return "";
  const auto folder = DiskFolder::Open(store, DiskFolder::Missing::kIsError);
  if (!folder.ok()) return "";
  const absl::StatusOr<std::string> newest = FindSnapshot(**folder, kNewestSnapshot);
  if (!newest.ok()) return "";
  // Otherwise the last state has been saved since.
  const bool lacks_some = at_risk.snapshot() == *newest && at_risk.updates() > 0;
  return absl::StrCat("newest snapshot: ", store, "/", *newest, "; --resume latest goes on from it",
                      lacks_some ? absl::StrCat(", without ", ShowAtRisk(at_risk)) : "");
}

}  // namespace

int RunCommand(int count, const char* const* arguments) {
  RunOptions options{.cores = UsableCores()};
  ConfigFile file("covey run",
                  "Starts a scheduler, servers and groups of workers on this machine, shows their "
                  "progress, and stops them when the workers have ended. The last line of standard "
                  "output is one JSON object: what a worker printed after 'result', and the size "
                  "of the cluster.");
  FaultChoices choices;
  AddTo(file, options, choices);
  if (const auto code = file.LoadForMain(count, arguments)) return *code;
  if (const absl::Status faults = TakeFaults(choices, options); !faults.ok()) {
    PrintFailure(arguments[0], faults);
    return kExitUsage;
  }
  const absl::StatusOr<LocalPaths> paths = Check(options);
  if (!paths.ok()) {
    PrintFailure(arguments[0], paths.status());
    return kExitUsage;
  }

  Terminal terminal;
  RunOutcome outcome = RunLocalCluster(options, *paths, terminal);
  const absl::Status written = WriteFiles(options, outcome);
  if (written.ok() && !options.report_file.empty()) {
    terminal.Print(Terminal::Stream::kError, absl::StrCat("report: ", options.report_file));
  }
  if (const std::string line = StepLine(outcome); !line.empty()) {
    terminal.Print(Terminal::Stream::kError, line);
  }
  if (const std::string line = TargetLine(outcome); !line.empty()) {
    terminal.Print(Terminal::Stream::kError, line);
  }
  if (const std::string line = SnapshotLine(options.store, outcome.at_risk); !line.empty()) {
    terminal.Print(Terminal::Stream::kError, line);
  }
  for (const std::string& line : LossLines(outcome)) {
    terminal.Print(Terminal::Stream::kError, line);
  }
  outcome.status.Update(written);
  if (!outcome.status.ok()) {
    PrintFailure(arguments[0], outcome.status);
    return kExitFailed;
  }
  terminal.Print(Terminal::Stream::kOutput, ResultLine(options, outcome));
  return kExitOk;
}

}  // namespace covey::cli
