// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>

#include "absl/time/time.h"
#include "proto/scheduler.pb.h"

namespace covey::scheduler {

// What became of the newest snapshots, for users. A value.
class SnapshotStatuses {
 public:
  // A status is made where there is none. Valid until the next call.
  proto::SnapshotStatus& Of(uint64_t id);
  // `under_way`: for how long the present one has been.
  void FillStatus(absl::Duration under_way, proto::StatusReply& reply) const;

 private:
  std::deque<proto::SnapshotStatus> known_;  // newest last
};

}  // namespace covey::scheduler
