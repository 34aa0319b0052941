// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>

#include "absl/time/time.h"
#include "common/cluster/limits.h"
#include "proto/scheduler.pb.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// The scheduler's decisions with their evidence, for users: the newest `capacity`, numbered from 1.
// Actor-confined, deterministic. Forgotten at a restart: the durable log keeps the state, not its
// history.
class EventTrail {
 public:
  explicit EventTrail(size_t capacity = kEventsKeptMax) : capacity_(capacity) {}

  // `age`: since the scheduler started.
  void Add(absl::Duration age, Decision decision);
  // Appends the events numbered above `after`, oldest first.
  void CopyAfter(uint64_t after, proto::StatusReply& reply) const;

 private:
  const size_t capacity_;
  uint64_t next_sequence_ = 1;
  std::deque<proto::Event> events_;
};

}  // namespace covey::scheduler
