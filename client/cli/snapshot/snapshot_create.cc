// SPDX-License-Identifier: Apache-2.0
#include "client/cli/snapshot/snapshot_create.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "client/cli/console/text_file.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/runtime/process_main.h"

namespace covey::cli {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(200);
constexpr absl::Duration kLineEvery = absl::Seconds(1);

const proto::SnapshotStatus* Find(const proto::StatusReply& reply, uint64_t id) {
  for (const proto::SnapshotStatus& status : reply.snapshots()) {
    if (status.id() == id) return &status;
  }
  return nullptr;
}

std::string HowFar(const proto::SnapshotStatus* status) {
  if (status == nullptr || status->state() != proto::SnapshotStatus::UNDER_WAY) {
    return "waits until the groups can be planned";
  }
  return absl::StrCat(status->shards_written(), " of ", status->shards(), " shards are stored");
}

}  // namespace

absl::StatusOr<proto::SnapshotStatus> CreateSnapshot(const SchedulerTarget& scheduler,
                                                     absl::Duration timeout) {
  SchedulerStub stub(scheduler);
  COVEY_ASSIGN_OR_RETURN(const proto::CreateSnapshotReply created, stub.CreateSnapshot());
  uint64_t id = created.snapshot();
  const absl::Time start = MonotonicNow();
  absl::Time next_line = start + kLineEvery;
  for (;;) {
    COVEY_ASSIGN_OR_RETURN(const proto::StatusReply reply, stub.GetStatus());
    const proto::SnapshotStatus* const status = Find(reply, id);
    if (status != nullptr && status->state() == proto::SnapshotStatus::COMPLETE) return *status;
    if (status != nullptr && status->state() == proto::SnapshotStatus::FAILED) {
      if (status->tried_again_as() == 0) {
        return absl::AbortedError(absl::StrCat("snapshot ", id, ": ", status->reason()));
      }
      id = status->tried_again_as();
    }
    const absl::Time now = MonotonicNow();
    if (now >= start + timeout) {
      return absl::DeadlineExceededError(
          absl::StrCat("snapshot ", id, " was not complete within ", absl::FormatDuration(timeout),
                       ": ", HowFar(status), "; it goes on, see the events of covey status"));
    }
    if (now >= next_line) {
      next_line = now + kLineEvery;
      WriteAll(STDERR_FILENO, absl::StrCat("covey snapshot: ", HowFar(status), "\n"));
    }
    if (WaitForTermination(kPoll).has_value()) {
      return absl::CancelledError("interrupted; the snapshot goes on");
    }
  }
}

}  // namespace covey::cli
