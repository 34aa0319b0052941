// SPDX-License-Identifier: Apache-2.0
#include "client/cli/snapshot/snapshot_restore.h"

#include <unistd.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/console/text_file.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/runtime/process_main.h"

namespace covey::cli {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(200);
constexpr absl::Duration kLineEvery = absl::Seconds(1);

std::string HowFar(const proto::RestoreStatus& status) {
  if (status.state() == proto::RestoreStatus::READING) return "the snapshot's manifest is read";
  return absl::StrCat(status.shards_loaded(), " of ", status.shards(), " shards are loaded from ",
                      status.folder());
}

}  // namespace

absl::StatusOr<proto::RestoreTablesRequest> RestoreRequest(const std::string& snapshot,
                                                           const std::vector<std::string>& tables) {
  proto::RestoreTablesRequest request;
  request.set_snapshot(snapshot);
  for (const std::string& named : tables) {
    const std::vector<std::string> names = absl::StrSplit(named, absl::MaxSplits('=', 1));
    if (names[0].empty() || names.back().empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--table ", named, " is not of the form NAME or NAME=NEWNAME"));
    }
    proto::RestoredTable& table = *request.add_tables();
    table.set_name(names[0]);
    if (names.size() == 2) table.set_new_name(names[1]);
  }
  return request;
}

absl::StatusOr<proto::RestoreStatus> RestoreTables(const SchedulerTarget& scheduler,
                                                   const proto::RestoreTablesRequest& request,
                                                   absl::Duration timeout) {
  SchedulerStub stub(scheduler);
  COVEY_ASSIGN_OR_RETURN(const proto::RestoreTablesReply begun, stub.RestoreTables(request));
  const absl::Time start = MonotonicNow();
  absl::Time next_line = start + kLineEvery;
  for (;;) {
    COVEY_ASSIGN_OR_RETURN(const proto::StatusReply reply, stub.GetStatus());
    const proto::RestoreStatus& status = reply.restore();
    if (status.id() != begun.restore()) {
      return absl::AbortedError(
          "the scheduler has restarted, or restores other tables by now; covey tables shows "
          "whether the tables are there");
    }
    if (status.state() == proto::RestoreStatus::COMPLETE) return status;
    if (status.state() == proto::RestoreStatus::FAILED) return absl::AbortedError(status.reason());
    const absl::Time now = MonotonicNow();
    if (now >= start + timeout) {
      return absl::DeadlineExceededError(
          absl::StrCat("the tables were not ready within ", absl::FormatDuration(timeout), ": ",
                       HowFar(status), "; it goes on, see the events of covey status"));
    }
    if (now >= next_line) {
      next_line = now + kLineEvery;
      WriteAll(STDERR_FILENO, absl::StrCat("covey snapshot: ", HowFar(status), "\n"));
    }
    if (WaitForTermination(kPoll).has_value()) {
      return absl::CancelledError("interrupted; the restore goes on");
    }
  }
}

std::string RestoredText(const proto::RestoreStatus& restored) {
  const auto took = absl::Milliseconds(static_cast<int64_t>(restored.took_ms()));
  return absl::StrCat("restored from ", restored.folder(), " after ", absl::FormatDuration(took),
                      ": ", absl::StrJoin(restored.tables(), ", "), "\n");
}

std::string RestoredJson(const proto::RestoreStatus& restored) {
  const nlohmann::ordered_json json = {
      {"name", restored.folder()},
      {"tables", std::vector<std::string>(restored.tables().begin(), restored.tables().end())},
      {"took_ms", restored.took_ms()}};
  return json.dump(2) + "\n";
}

}  // namespace covey::cli
