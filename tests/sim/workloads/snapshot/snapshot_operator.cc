// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/snapshot/snapshot_operator.h"

#include <utility>

#include "tests/sim/workloads/expected_errors.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {

void SnapshotOperator::Step(absl::Time now, client::ClientActor& client, Outbox& outbox) {
  if (under_way_ || now < next_) return;
  const bool is_first = next_ == absl::InfinitePast();
  next_ = now + pause_max_ * random_.Uniform();
  if (is_first) return;
  under_way_ = true;
  proto::Envelope request;
  request.mutable_create_snapshot_request();
  client.control().Start(
      now, std::move(request), now + absl::Seconds(10),
      [this](absl::Time, const absl::Status& status, const proto::Envelope*, Outbox&) {
        under_way_ = false;
        if (!IsExpected(status)) violations_.Add(kSnapshot, status.ToString());
      },
      outbox);
}

}  // namespace covey::sim
