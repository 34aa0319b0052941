// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/update/member_shards.h"
#include "worker/update/part_update.h"
#include "worker/update/server_link.h"
#include "worker/update/server_update.h"

namespace covey::worker {

// The member updates its part itself, with the table's optimizer: no server is on the path, and the
// servers keep the initial values forever. Gives the same bits as ServerUpdate under `bsp` with one
// group.
//
// Limits: the values and the optimizer's state of the part exist only here, so such a group cannot
// change its members.
class MemberUpdate : public PartUpdate {
 public:
  // One entry of `configs` per entry of `shards`. INVALID_ARGUMENT: as MemberShards.
  static absl::StatusOr<std::unique_ptr<MemberUpdate>> Create(
      ServerLink& link, Communicator& group, std::vector<PartShards> shards,
      std::span<const MemberShards::Config> configs);

  void Apply(absl::Time now, PartStep step, Outbox& outbox) override;
  void Fetch(absl::Time now, PartStep step, Outbox& outbox) override;

 private:
  MemberUpdate(ServerLink& link, Communicator& group, std::vector<PartShards> shards,
               std::vector<MemberShards> owned)
      : group_(group), first_values_(link, shards, {}), shards_(shards), owned_(std::move(owned)) {}

  Communicator& group_;
  ServerUpdate first_values_;
  const std::vector<PartShards> shards_;
  std::vector<MemberShards> owned_;
  bool fetched_ = false;
};

}  // namespace covey::worker
