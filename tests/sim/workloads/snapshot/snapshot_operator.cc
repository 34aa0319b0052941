// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/snapshot/snapshot_operator.h"

#include <utility>

#include "tests/sim/workloads/expected_errors.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {

proto::Envelope SnapshotOperator::Draw() {
  proto::Envelope request;
  if (restores_.empty() || random_.Chance(0.5)) {
    request.mutable_create_snapshot_request();
    return request;
  }
  proto::RestoreTablesRequest& restore = *request.mutable_restore_tables_request();
  restore.set_snapshot("latest");
  proto::RestoredTable& table = *restore.add_tables();
  const Restore& drawn = restores_[random_.Below(restores_.size())];
  table.set_name(drawn.table);
  table.set_new_name(drawn.new_name);
  return request;
}

void SnapshotOperator::Step(absl::Time now, client::ClientActor& client, Outbox& outbox) {
  if (under_way_ || now < next_) return;
  const bool is_first = next_ == absl::InfinitePast();
  next_ = now + pause_max_ * random_.Uniform();
  if (is_first) return;
  under_way_ = true;
  client.control().Start(
      now, Draw(), now + absl::Seconds(10),
      [this](absl::Time, const absl::Status& status, const proto::Envelope*, Outbox&) {
        under_way_ = false;
        // Other tables are being restored.
        if (!IsExpected(status) && !absl::IsFailedPrecondition(status))
          violations_.Add(kSnapshot, status.ToString());
      },
      outbox);
}

}  // namespace covey::sim
