// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/snapshot_statuses.h"

#include <algorithm>
#include <cstddef>

namespace covey::scheduler {
namespace {

constexpr size_t kStatusesKept = 16;

}  // namespace

proto::SnapshotStatus& SnapshotStatuses::Of(uint64_t id) {
  const auto found = std::find_if(known_.begin(), known_.end(),
                                  [id](const auto& status) { return status.id() == id; });
  if (found != known_.end()) return *found;
  if (known_.size() >= kStatusesKept) known_.pop_front();
  proto::SnapshotStatus& status = known_.emplace_back();
  status.set_id(id);
  return status;
}

void SnapshotStatuses::FillStatus(absl::Duration under_way, proto::StatusReply& reply) const {
  for (const proto::SnapshotStatus& known : known_) {
    proto::SnapshotStatus& status = *reply.add_snapshots();
    status = known;
    if (status.state() == proto::SnapshotStatus::UNDER_WAY) {
      status.set_took_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(under_way)));
    }
  }
}

}  // namespace covey::scheduler
