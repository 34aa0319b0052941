// SPDX-License-Identifier: Apache-2.0
#include "scheduler/state/cluster_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/cluster/view.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

Epoch EpochFor(const ClusterState& state, Epoch before_call, Transaction::EpochScope scope) {
  const bool is_shared = scope == Transaction::EpochScope::kCall && state.epoch() != before_call;
  return is_shared ? state.epoch() : state.epoch().Next();
}

}  // namespace

proto::LogRecord NewJob(const JobSpec& job) {
  proto::LogRecord record;
  record.mutable_view()->set_job_name(job.name);
  record.mutable_view()->set_job(JobFingerprint(job.name));
  record.mutable_view()->set_feedback_flush_steps(job.feedback_flush_steps);
  record.mutable_view()->set_run(job.run);
  record.set_next_node(kSchedulerNode.Next().value());
  record.set_next_table(1);
  return record;
}

ClusterState::ClusterState(JobSpec job, std::optional<proto::LogRecord> recovered)
    : job_(std::move(job)), record_(recovered ? *std::move(recovered) : NewJob(job_)) {
  if (view().groups().empty()) {
    record_.mutable_view()->set_waiting_for(
        MissingNodes(job_, view(), Expected::kServersAndWorkers));
  }
  BeginCall();
}

std::vector<Decision> ClusterState::TakeDecisions() { return std::exchange(decisions_, {}); }

const proto::LogRecord& ClusterState::NextRecord() {
  record_.set_index(record_.index() + 1);
  record_.set_decision(std::exchange(unlogged_text_, ""));
  has_unlogged_ = false;
  return record_;
}

Transaction::Transaction(ClusterState& state, EpochScope scope)
    : state_(state), epoch_(EpochFor(state, state.epoch_before_call_, scope)) {
  COVEY_CHECK(!state_.in_transaction_);
  state_.in_transaction_ = true;
}

Transaction::~Transaction() {
  COVEY_CHECK(committed_ || (!edited_ && events_.empty()));
  state_.in_transaction_ = false;
}

proto::ClusterView& Transaction::EditView() {
  view_edited_ = true;
  return *EditUnpublished().mutable_view();
}

// The parts belong to the record, which is not constant.

proto::Node& Transaction::Edit(const proto::Node& node) {
  EditView();
  return const_cast<proto::Node&>(node);
}

proto::Group& Transaction::Edit(const proto::Group& group) {
  EditView();
  return const_cast<proto::Group&>(group);
}

proto::Table& Transaction::Edit(const proto::Table& table) {
  EditView();
  return const_cast<proto::Table&>(table);
}

proto::Shard& Transaction::EditChain(const proto::Shard& shard) {
  EditView();
  auto& edited = const_cast<proto::Shard&>(shard);
  edited.set_chain_epoch(epoch_.value());
  return edited;
}

NodeId Transaction::TakeNodeId() {
  proto::LogRecord& record = EditUnpublished();
  const NodeId id(record.next_node());
  record.set_next_node(id.Next().value());
  return id;
}

TableId Transaction::TakeTableId() {
  proto::LogRecord& record = EditUnpublished();
  const TableId id(record.next_table());
  record.set_next_table(id.Next().value());
  return id;
}

proto::LogRecord& Transaction::EditUnpublished() {
  COVEY_CHECK(!committed_);
  edited_ = true;
  return state_.record_;
}

void Transaction::Commit() {
  COVEY_CHECK(!committed_);
  COVEY_CHECK(!view_edited_ || !events_.empty());
  committed_ = true;
  if (!edited_ && events_.empty()) return;
  if (view_edited_) state_.record_.mutable_view()->set_epoch(epoch_.value());
  if (std::any_of(events_.begin(), events_.end(), AffectsPlacement)) ++state_.placement_version_;

  state_.has_unlogged_ = true;
  const std::string all = Describe(events_);
  if (!all.empty()) {
    absl::StrAppend(&state_.unlogged_text_, state_.unlogged_text_.empty() ? "" : "; ", all);
  }
  for (const Event& event : events_) state_.event_counts_.Add(event);
  std::erase_if(events_, IsRoutine);
  if (events_.empty()) return;
  Decision decision{.text = Describe(events_), .kinds = {}};
  for (const Event& event : events_) {
    const absl::string_view kind = KindOf(event);
    if (std::find(decision.kinds.begin(), decision.kinds.end(), kind) == decision.kinds.end()) {
      decision.kinds.push_back(kind);
    }
  }
  state_.decisions_.push_back(std::move(decision));
}

}  // namespace covey::scheduler
