// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "worker/group/communicator.h"
#include "worker/update/part_update.h"
#include "worker/update/server_link.h"
#include "worker/update/server_update.h"

namespace covey::worker {

// The program updates: the new values of a part are the mean of its gradients, the sum divided by
// the samples. Without samples they are zero. No server is on the path; Fetch gets the values with
// which the tables began. A mean that is not finite, where the table refuses such gradients, fails
// the group with INVALID_ARGUMENT.
class ProgramUpdate : public PartUpdate {
 public:
  // `refuses_non_finite`: of the tables of `shards`.
  ProgramUpdate(ServerLink& link, Communicator& group, std::vector<PartShards> shards,
                std::vector<bool> refuses_non_finite)
      : group_(group),
        first_values_(link, shards, {}),
        shards_(std::move(shards)),
        refuses_non_finite_(std::move(refuses_non_finite)) {}

  void Apply(absl::Time now, PartStep step, Outbox& outbox) override;
  void Fetch(absl::Time now, PartStep step, Outbox& outbox) override;

 private:
  Communicator& group_;
  ServerUpdate first_values_;
  const std::vector<PartShards> shards_;
  const std::vector<bool> refuses_non_finite_;
};

}  // namespace covey::worker
