// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/metrics/duration_histogram.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "proto/view.pb.h"
#include "scheduler/log/published_views.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// Makes commits durable, and only then lets others know of them:
//
//               Flush, when something was committed
//     kIdle ─────────────────────────────────────────▶ kWriting
//       ▲     DiskAppend is sent                           │
//       │                                                  │ DiskDurable
//       ├──────────────────────────────────────────────────┤
//       │ OK: the view is published, replies are released  │ error: replies are released as
//                                     ▲                    ▼ UNAVAILABLE
//                                     └──── Retry ───── kFailed
//
// One record is written at a time; what is committed meanwhile goes together into the next one.
// From an error until a record is durable again, replies are UNAVAILABLE.
//
// Invariants:
//  1. A reply is released only when everything that was committed before it is durable.
//  2. The epoch of published views never goes back, over restarts too.
//
// Actor-confined, deterministic. `state` outlives it.
class CommitPipeline {
 public:
  // Of write_times.
  static constexpr absl::Duration kWriteBounds[] = {
      absl::Milliseconds(1),  absl::Milliseconds(3),   absl::Milliseconds(10),
      absl::Milliseconds(30), absl::Milliseconds(100), absl::Milliseconds(300),
      absl::Seconds(1),       absl::Seconds(5)};

  explicit CommitPipeline(ClusterState& state) : state_(state), views_(state.view()) {}

  // Sends `reply` when everything that is committed so far is durable.
  void SendWhenDurable(Message reply, Outbox& outbox);
  // Starts to write a record if one is due, none is being written, and none has failed.
  void Flush(absl::Time now, Outbox& outbox);
  // After a failure: writes the next record, which holds all that is committed so far.
  void Retry(absl::Time now, Outbox& outbox);
  // The disk's reply. Returns the replies that are released, to be sent in this order. An
  // unexpected reply of the disk is ignored.
  std::vector<Message> OnDiskDurable(absl::Time now, const Message& message);

  bool is_writing() const { return phase_ == Phase::kWriting; }
  // The view that others may know: the newest durable one.
  const proto::ClusterView& published() const { return views_.newest(); }
  // The same, and how watchers learn of it.
  PublishedViews& views() { return views_; }
  // Not OK while the log cannot be written.
  const absl::Status& disk_failure() const { return disk_failure_; }
  // From sending a record to the disk until it is durable; without records that failed.
  const DurationHistogram& write_times() const { return write_times_; }
  // The status with which requests are refused meanwhile.
  absl::Status FailureStatus() const;

 private:
  enum class Phase { kIdle, kWriting, kFailed };

  void Write(absl::Time now, Outbox& outbox);

  ClusterState& state_;
  Phase phase_ = Phase::kIdle;
  PublishedViews views_;
  // Of the record that is being written, unless it is the published one.
  std::optional<proto::ClusterView> written_view_;
  std::vector<Message> waiting_for_this_;  // replies that wait for that record
  std::vector<Message> waiting_for_next_;  // replies that wait for the record after it
  absl::Status disk_failure_;
  absl::Time written_since_;
  DurationHistogram write_times_{kWriteBounds};
};

}  // namespace covey::scheduler
