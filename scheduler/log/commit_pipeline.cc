// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/commit_pipeline.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/planted_bug.h"
#include "scheduler/log/scheduler_log.h"

namespace covey::scheduler {

void CommitPipeline::SendWhenDurable(Message reply, Outbox& outbox) {
  if (!disk_failure_.ok()) {
    SetStatus(FailureStatus(), reply);
    outbox.Send(std::move(reply));
  } else if (Planted(PlantedBug::kAnswerBeforeLogged)) {
    outbox.Send(std::move(reply));
  } else if (state_.has_unlogged()) {
    waiting_for_next_.push_back(std::move(reply));
  } else if (phase_ == Phase::kWriting) {
    waiting_for_this_.push_back(std::move(reply));
  } else {
    outbox.Send(std::move(reply));
  }
}

void CommitPipeline::Flush(absl::Time now, Outbox& outbox) {
  if (phase_ == Phase::kIdle && state_.has_unlogged()) Write(now, outbox);
}

void CommitPipeline::Retry(absl::Time now, Outbox& outbox) {
  if (phase_ == Phase::kFailed) Write(now, outbox);
}

void CommitPipeline::Write(absl::Time now, Outbox& outbox) {
  phase_ = Phase::kWriting;
  written_since_ = now;
  const proto::LogRecord& record = state_.NextRecord();
  Message append;
  append.set_to({kSchedulerNode, kDiskLoop});
  append.envelope.mutable_disk_append()->set_index(record.index());
  append.envelope.mutable_disk_append()->set_record(EncodeRecord(record));
  if (record.view().epoch() > published().epoch()) written_view_ = record.view();
  waiting_for_this_ = std::exchange(waiting_for_next_, {});
  outbox.Send(std::move(append));
}

std::vector<Message> CommitPipeline::OnDiskDurable(absl::Time now, const Message& message) {
  if (message.envelope.from_loop() != kDiskLoop || phase_ != Phase::kWriting ||
      message.envelope.disk_durable().index() != state_.record().index()) {
    return {};
  }
  disk_failure_ = StatusOf(message);
  std::vector<Message> released = std::exchange(waiting_for_this_, {});
  if (disk_failure_.ok()) {
    phase_ = Phase::kIdle;
    write_times_.Record(now - written_since_);
    if (auto view = std::exchange(written_view_, std::nullopt)) views_.Publish(*std::move(view));
    return released;
  }
  phase_ = Phase::kFailed;
  for (Message& reply : std::exchange(waiting_for_next_, {})) released.push_back(std::move(reply));
  // Others must not learn of decisions that are not durable. Receivers ignore the body of a failed
  // reply.
  for (Message& reply : released) SetStatus(FailureStatus(), reply);
  return released;
}

absl::Status CommitPipeline::FailureStatus() const {
  return absl::UnavailableError(
      absl::StrCat("the scheduler cannot write its log, and decides nothing until it can: ",
                   disk_failure_.message()));
}

}  // namespace covey::scheduler
