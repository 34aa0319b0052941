// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/metrics/duration_histogram.h"
#include "common/net/message.h"
#include "proto/process.pb.h"
#include "proto/scheduler.pb.h"
#include "scheduler/snapshots/cut_plan.h"
#include "scheduler/snapshots/loss_budget.h"
#include "scheduler/snapshots/order_conditions.h"
#include "scheduler/snapshots/reported_parts.h"
#include "scheduler/snapshots/snapshot_statuses.h"
#include "scheduler/snapshots/snapshots_options.h"
#include "scheduler/snapshots/step_forecast.h"
#include "scheduler/snapshots/stored_snapshots.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/work/data_dispatcher.h"

namespace covey::scheduler {

// Makes snapshots: the state of the job after exactly these steps of each group, and nothing else,
// while training goes on.
//
//                    steps that lie ahead           every shard is stored, and the
//                    are in the view                training data is accounted for
//   idle ─▶ wanted ────────────────────▶ ordered ─────────────────────────────────▶ publishing
//     ▲       ▲                            │                                            │
//     │       └── tried again, at most ────┤ a group or a chain has changed, a shard    │
//     │           kAttemptsMax times       │ came too late, or the store refuses        │
//     └───────── given up ─────────────────┴──────────── the manifest is stored ────────┘
//
// Servers store the shards (server/snapshot), and report; the manifest is stored last and makes the
// snapshot complete (stored_snapshots.h).
//
// Invariants: 1. A manifest names only parts that were reported under its order. 2. The groups,
// their members, and the chains of all shards are the same from the order to the last report;
// otherwise the order is withdrawn. 3. An id is never used twice.
//
// Actor-confined, deterministic. `state` and `dispatcher` outlive it. A snapshot that is under way
// when the scheduler restarts is withdrawn.
class Snapshots {
 public:
  using Options = SnapshotsOptions;
  static constexpr int kAttemptsMax = 4;
  // Of part_times.
  static constexpr absl::Duration kPartBounds[] = {
      absl::Milliseconds(100), absl::Milliseconds(500), absl::Seconds(2), absl::Seconds(5),
      absl::Seconds(15),       absl::Minutes(1),        absl::Minutes(5), absl::Minutes(15)};

  Snapshots(const Options& options, ClusterState& state, DataDispatcher& dispatcher)
      : options_(options),
        state_(state),
        dispatcher_(dispatcher),
        stored_(options.kept, state),
        budget_({options.flush_every, options.wall_clock_ahead}, state) {}

  // `every`, `every_samples`, `kept` and `deadline` from now on, and nothing else of `options`. A
  // snapshot that is under way keeps its deadline.
  void SetSchedule(const Options& options);

  // Once, before anything else: looks what the store holds.
  void Start(absl::Time now);
  // A user asks for one; the id that it will have, unless its status says under which id it is
  // tried again. FAILED_PRECONDITION: there is no store.
  absl::StatusOr<uint64_t> Create(absl::Time now, const std::string& why);
  // A worker's heartbeat.
  void OnProgress(absl::Time now, NodeId worker, const proto::Progress& progress);
  // A server's heartbeat.
  void OnLoad(NodeId server, const proto::ServerLoad& load) { budget_.OnLoad(server, load); }
  void OnDeparture(NodeId node) {
    forecast_.OnDeparture(node);
    budget_.OnDeparture(node);
  }
  // A server has stored some shards, or cannot.
  void OnReport(absl::Time now, const proto::SnapshotReportRequest& report);
  void OnStoreReply(absl::Time now, const Message& reply);
  // To be called at NextTick, and at least every half second.
  void Tick(absl::Time now);
  absl::Time NextTick() const;

  bool has_store() const { return options_.has_store; }
  // As StoredSnapshots.
  bool IsGoing(const std::string& folder) const { return stored_.IsGoing(folder); }
  // For the store, since the last call.
  std::vector<Message> TakeRequests() { return stored_.TakeRequests(); }
  void FillStatus(absl::Time now, proto::StatusReply& reply) const;
  // From a snapshot's order until each of its shards was reported as stored.
  const DurationHistogram& part_times() const { return part_times_; }

 private:
  enum class Phase { kListing, kIdle, kWanted, kOrdered, kPublishing };

  // The snapshot that is under way.
  struct Work {
    std::string why;
    absl::Time since;
    absl::Time until;  // it is given up then, unless it was put off until a flush
    Flush flush = Flush::kAwaited;
    absl::Time not_before = absl::InfinitePast();
    int attempt = 0;
    bool is_flush = false;
    // From the order on.
    absl::Time ordered_at;
    bool awaits_flush = false;
    absl::Time planned_cut;
    absl::Time cut_at;     // at about this time; infinite = not known yet
    bool is_last = false;  // the job closes
    OrderConditions conditions;
    ReportedParts parts;
    uint64_t reused_bytes = 0;
    proto::NewestSnapshot newest;  // what is published
  };

  bool IsDue(absl::Time now) const;
  // Whether there is a table that snapshots have.
  bool HasContent() const;
  void Begin(absl::Time now, const std::string& why);
  void Order(absl::Time now);
  void FollowOrder(absl::Time now);
  void Publish(absl::Time now);
  void WatchBudget(absl::Time now);
  // The snapshot cannot be made; perhaps a later one can.
  void Fail(absl::Time now, const std::string& reason);
  void Complete(absl::Time now);
  void Withdraw(Transaction& change);
  const proto::SnapshotOrder& order() const { return state_.view().snapshot(); }
  uint64_t next_id() const { return std::max<uint64_t>(1, state_.record().next_snapshot()); }
  void OnListed(absl::Time now);

  Options options_;
  ClusterState& state_;
  DataDispatcher& dispatcher_;

  Phase phase_ = Phase::kListing;
  // Why a user has asked for a snapshot while the store was being listed.
  std::optional<std::string> asked_;
  Work work_;
  DurationHistogram part_times_{kPartBounds};
  StepForecast forecast_;
  StoredSnapshots stored_;
  LossBudget budget_;
  absl::Time last_begun_ = absl::InfinitePast();
  uint64_t samples_at_last_ = 0;
  SnapshotStatuses statuses_;  // of this process
};

}  // namespace covey::scheduler
