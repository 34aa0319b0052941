// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/cluster/scheduler_program.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/snapshot/snapshot_reader.h"
#include "scheduler/log/published_views.h"
#include "scheduler/snapshots/restored_job.h"

namespace covey::sim {
namespace {

// Nothing when the store holds no such snapshot; checkers say so.
std::optional<proto::LogRecord> StateOfSnapshot(const scheduler::Config& config, Folder& store) {
  const auto folder = FindSnapshot(store, config.resume);
  if (!folder.ok()) return std::nullopt;
  const auto snapshot = SnapshotReader::Open(store, *folder);
  if (!snapshot.ok()) return std::nullopt;
  auto restored = scheduler::RestoredJob(config.job(), snapshot->manifest());
  COVEY_CHECK(restored.ok());
  return *std::move(restored);
}

}  // namespace

SchedulerProgram::SchedulerProgram(Simulator& simulator, const scheduler::Config& config,
                                   SimLog& log, Folder& store)
    : simulator_(simulator) {
  absl::StatusOr<std::optional<proto::LogRecord>> recovered = log.Open();
  if (!recovered.ok()) return;
  has_recovered_ = recovered->has_value();
  if (has_recovered_) {
    simulator.Count("scheduler_recovered");
  } else if (!config.resume.empty()) {
    *recovered = StateOfSnapshot(config, store);
    simulator.Count(recovered->has_value() ? "job_restored" : "job_not_restored");
  }
  actor_ = std::make_unique<scheduler::SchedulerActor>(config, *std::move(recovered));
  actor_->OnLoss([this, &simulator](const std::string&) {
    must_stop_ = true;
    simulator.Count("job_must_stop");
  });
  actor_->OnDecision([&simulator](const std::string& decision) {
    simulator.Trace(absl::StrCat("the scheduler decides: ", decision));
  });
  front_.Lead(*actor_);
}

void SchedulerProgram::Pack(Message& message) {
  if (!message.envelope.has_watch_view_reply()) return;
  scheduler::UnpackWatchReply(message);
  if (message.envelope.watch_view_reply().has_change()) simulator_.Count("view_change_sent");
}

std::optional<Message> SchedulerProgram::Shown(const Message& message) const {
  if (!message.envelope.watch_view_reply().has_change()) return std::nullopt;
  Message shown = message;
  proto::WatchViewReply& reply = *shown.envelope.mutable_watch_view_reply();
  reply.clear_change();
  *reply.mutable_view() = *published();
  return shown;
}

}  // namespace covey::sim
