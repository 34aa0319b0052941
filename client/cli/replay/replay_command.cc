// SPDX-License-Identifier: Apache-2.0
#include "client/cli/replay/replay_command.h"

#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/console/command.h"
#include "client/cli/console/figures.h"
#include "client/cli/console/text_file.h"
#include "client/cli/replay/replay_view.h"
#include "client/cli/replay/value_files.h"
#include "client/cli/replay/what_if.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/contract/contract.h"
#include "common/recording/recording.h"
#include "common/runtime/config_file.h"
#include "common/runtime/process_main.h"
#include "common/store/disk_folder.h"
#include "server/replay/replay.h"

namespace covey::cli {
namespace {

struct Asked {
  std::string folder;
  bool order = false;
  std::string export_folder;
  std::string store;
  bool json = false;
  server::WhatIf what_if;
};

// Says on standard error how far it is, once per second; ends at a signal.
class Progress {
 public:
  // Each history is gone through `times` times.
  Progress(const Recording& recording, uint64_t times) {
    for (const ShardHistory& shard : recording.shards()) records_ += times * shard.updates.size();
  }

  absl::Status Count() {
    ++done_;
    const absl::Time now = MonotonicNow();
    if (now - last_ < absl::Seconds(1)) return absl::OkStatus();
    last_ = now;
    if (WaitForTermination(absl::ZeroDuration())) return absl::CancelledError("interrupted");
    WriteAll(STDERR_FILENO, absl::StrCat("covey replay: ", ShowCount(done_), " of ",
                                         ShowCount(records_), " records\n"));
    return absl::OkStatus();
  }

 private:
  uint64_t records_ = 0;
  uint64_t done_ = 0;
  absl::Time last_ = MonotonicNow();
};

// Of a shard that was lost and made again, the model has the newest content.
bool IsNewest(const Recording& recording, size_t shard) {
  if (shard + 1 == recording.shards().size()) return true;
  const ShardHistory& here = recording.shards()[shard];
  const ShardHistory& next = recording.shards()[shard + 1];
  return here.table.id() != next.table.id() || here.shard().index() != next.shard().index();
}

// What all shards have gone through again, per table.
struct Replayed {
  std::vector<TableReplay> tables;
  // Under WhatIf, and only there.
  std::vector<TableDistance> distances;
};

absl::StatusOr<Replayed> Replay(const Asked& asked, const Recording& recording) {
  const bool is_changed = asked.what_if.changes_something();
  Progress progress(recording, is_changed ? 2 : 1);
  const auto count = [&progress] { return progress.Count(); };
  std::optional<ValueFiles> files;
  if (!asked.export_folder.empty()) files.emplace(asked.export_folder);
  std::unique_ptr<DiskFolder> store;
  if (!asked.store.empty()) {
    COVEY_ASSIGN_OR_RETURN(store, DiskFolder::Open(asked.store, DiskFolder::Missing::kIsError));
  }
  Replayed result;
  for (size_t i = 0; i < recording.shards().size(); ++i) {
    const ShardHistory& history = recording.shards()[i];
    COVEY_ASSIGN_OR_RETURN(server::ReplayedShard replayed,
                           server::ReplayShard(recording, history, {}, store.get(), count));
    if (replayed.difference) {
      return absl::AbortedError(DescribeDifference(history, *replayed.difference));
    }
    const std::string& name = history.table.spec().name();
    if (result.tables.empty() || result.tables.back().name != name) {
      result.tables.push_back({.name = name});
      if (is_changed) result.distances.push_back({.name = name});
    }
    result.tables.back().Add(history, replayed);
    if (is_changed) {
      COVEY_ASSIGN_OR_RETURN(
          server::ReplayedShard changed,
          server::ReplayShard(recording, history, asked.what_if, store.get(), count));
      result.distances.back().Add(replayed, changed);
      replayed = std::move(changed);
    }
    if (files && IsNewest(recording, i)) {
      COVEY_RETURN_IF_ERROR(files->Add(history, replayed.values));
    }
  }
  if (files) COVEY_RETURN_IF_ERROR(files->Finish());
  return result;
}

std::string Show(const Asked& asked, const Recording& recording, const Replayed& replayed) {
  if (asked.what_if.changes_something()) {
    return asked.json ? DistanceJson(replayed.distances, asked.what_if)
                      : DistanceText(replayed.distances, asked.what_if);
  }
  return asked.json ? ReplayJson(replayed.tables, recording.notes()) : ReplayText(replayed.tables);
}

absl::Status Run(const Asked& asked) {
  COVEY_ASSIGN_OR_RETURN(const std::unique_ptr<DiskFolder> folder,
                         DiskFolder::Open(asked.folder, DiskFolder::Missing::kIsError));
  COVEY_ASSIGN_OR_RETURN(const Recording recording, Recording::Open(*folder));
  for (const std::string& note : recording.notes()) {
    WriteAll(STDERR_FILENO, absl::StrCat("covey replay: note: ", note, "\n"));
  }
  if (asked.order) {
    for (const ShardHistory& history : recording.shards()) {
      if (!WriteAll(STDOUT_FILENO, OrderLines(history))) break;
    }
    return absl::OkStatus();
  }
  COVEY_ASSIGN_OR_RETURN(const Replayed replayed, Replay(asked, recording));
  WriteAll(STDOUT_FILENO, Show(asked, recording, replayed));
  return absl::OkStatus();
}

// The names differ from those of programs that train, whose environment may be set.
void AddWhatIf(ConfigFile& options, server::WhatIf& what_if) {
  options.Add(
      "with-optimizer",
      [&what_if](absl::string_view text) { return ParseOptimizer(text, what_if); },
      [&what_if] { return OptimizerText(what_if); },
      "what if all tables had this optimizer: KIND[:FIELD=VALUE,...], as in "
      "adam:beta1=0.8,lr=0.01");
  options.Add(
      "with-learning-rate",
      [&what_if](absl::string_view text) -> absl::Status {
        double rate = 0;
        if (!absl::SimpleAtod(text, &rate)) return absl::InvalidArgumentError("is not a number");
        what_if.base_rate = rate;
        return absl::OkStatus();
      },
      [&what_if] { return what_if.base_rate ? absl::StrCat(*what_if.base_rate) : ""; },
      "what if the schedules of all tables had this base rate");
  options.Add(
      "with-contract",
      [&what_if](absl::string_view text) -> absl::Status {
        COVEY_ASSIGN_OR_RETURN(what_if.contract, ParseContract(text));
        return absl::OkStatus();
      },
      [&what_if] { return what_if.contract ? ContractName(*what_if.contract) : ""; },
      "what if the pushes of an async run had met this gate: buffered:K or async");
}

}  // namespace

int ReplayCommand(int count, const char* const* arguments) {
  Asked asked;
  std::vector<std::string> words;
  ConfigFile options(
      "covey replay",
      "Applies a recording again, on one process and without a cluster: every shard's updates in "
      "the recorded order, with the code of servers. Exit code: 0 every digest is equal, bit for "
      "bit; 1 the recording is damaged, or a digest differs: the records and groups of the first "
      "difference are named. With --with-optimizer and the like it shows how far the "
      "values would have gone from the recorded ones, on the same gradients.");
  options.Add("order", &asked.order,
              "only print who pushed in which order: one line per record, shard by shard");
  options.Add("export", &asked.export_folder,
              "write the values after the last record to this folder, a .npy file per table");
  options.Add("store", &asked.store,
              "folder of the snapshots with which the recorded job, or tables of it, began");
  AddWhatIf(options, asked.what_if);
  AddOutput(options, &asked.json);
  options.TakeRest(&words, "DIR   folder of a recording, as covey run --record writes it");
  if (const auto code = LoadWithShortOutput(options, count, arguments)) return *code;
  if (words.size() != 1) {
    PrintFailure(arguments[0], absl::InvalidArgumentError(
                                   "name one folder, as in covey replay DIR; covey run --record "
                                   "DIR makes one"));
    return kExitUsage;
  }
  asked.folder = words[0];
  if (const absl::Status status = Run(asked); !status.ok()) {
    PrintFailure(arguments[0], status);
    return kExitFailed;
  }
  return kExitOk;
}

}  // namespace covey::cli
