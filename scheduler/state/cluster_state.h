// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/cluster/ids.h"
#include "proto/log.pb.h"
#include "scheduler/state/event.h"
#include "scheduler/state/event_counts.h"
#include "scheduler/state/job_spec.h"

namespace covey::scheduler {

// The first state of a new job: no nodes, no tables.
proto::LogRecord NewJob(const JobSpec& job);

// What one transaction has decided.
struct Decision {
  std::string text;
  // proto::Event.kinds, each once.
  std::vector<absl::string_view> kinds;
};

// The state of the job: the view that nodes see, and everything else that the scheduler has to
// remember over a restart. Machines read it here, and edit it only through a Transaction.
//
//   Transaction ─▶ edits the state in place ─▶ Commit ─▶ epoch raised, events collected
//
// Invariants:
//  1. The epoch is raised in Transaction::Commit and nowhere else, by one for each transaction that
//     has edited the view; but see EpochScope::kCall.
//  2. Each edit of the view is explained by at least one event.
//  3. Every commit is in the next record.
//
// Actor-confined, deterministic.
class ClusterState {
 public:
  // `recovered`: the newest record of the log; nothing = a new job. The operator may have changed
  // `job` since that record was written.
  ClusterState(JobSpec job, std::optional<proto::LogRecord> recovered);

  const JobSpec& job() const { return job_; }
  const proto::LogRecord& record() const { return record_; }
  const proto::ClusterView& view() const { return record_.view(); }
  Epoch epoch() const { return Epoch(view().epoch()); }

  // A call of the actor begins. Epochs from before this call may be known to nodes.
  void BeginCall() { epoch_before_call_ = epoch(); }

  // Grows with each commit after which shards may have to be placed differently.
  uint64_t placement_version() const { return placement_version_; }

  // The transactions that were committed since the last call, for users. Routine events are left
  // out.
  std::vector<Decision> TakeDecisions();

  // Of all transactions that were committed.
  const EventCounts& event_counts() const { return event_counts_; }

  // Whether something was committed that is in no record yet.
  bool has_unlogged() const { return has_unlogged_; }
  // The next record, with everything that is committed so far.
  const proto::LogRecord& NextRecord();

 protected:
  // Tests set up a state without decisions.
  JobSpec job_;
  proto::LogRecord record_;

 private:
  friend class Transaction;

  Epoch epoch_before_call_;
  bool in_transaction_ = false;
  uint64_t placement_version_ = 0;
  bool has_unlogged_ = false;
  std::string unlogged_text_;
  std::vector<Decision> decisions_;
  EventCounts event_counts_;
};

// One change of the state, with all its consequences. Edits happen in place and cannot be undone,
// so a machine checks everything before its first edit. There is at most one transaction at a time.
// A transaction that has edited something must end with Commit; one that has not may be dropped.
//
//   Transaction change(state);
//   change.Edit(node).set_draining(true);
//   change.Add(DrainRequested{…});
//   change.Commit();
class Transaction {
 public:
  enum class EpochScope {
    // The change has an epoch of its own.
    kTransaction,
    // The change takes the epoch of an earlier transaction of the same call of the actor, if there
    // is one: no node has seen that epoch yet.
    kCall,
  };

  explicit Transaction(ClusterState& state, EpochScope scope = EpochScope::kTransaction);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // The epoch that the edited view will have.
  Epoch epoch() const { return epoch_; }

  // The whole view, to be edited.
  proto::ClusterView& EditView();
  // A part of the state's view, to be edited.
  proto::Node& Edit(const proto::Node& node);
  proto::Group& Edit(const proto::Group& group);
  proto::Table& Edit(const proto::Table& table);
  // The same, and stamps the chain with the epoch of this transaction.
  proto::Shard& EditChain(const proto::Shard& shard);

  // Parts of the record that are not in the view. They do not raise the epoch.
  NodeId TakeNodeId();
  TableId TakeTableId();
  proto::LogRecord& EditUnpublished();

  void Add(Event event) { events_.push_back(std::move(event)); }
  const std::vector<Event>& events() const { return events_; }

  // To be called at most once.
  void Commit();

 private:
  ClusterState& state_;
  const Epoch epoch_;
  bool view_edited_ = false;
  bool edited_ = false;
  bool committed_ = false;
  std::vector<Event> events_;
};

}  // namespace covey::scheduler
