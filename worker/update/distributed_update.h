#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/update/central_update.h"
#include "worker/update/owned_values.h"
#include "worker/update/part_update.h"
#include "worker/update/server_link.h"

namespace covey::worker {

// The member updates its part itself, with the table's optimizer: no server is on the path, which
// keeps the first values for good. The same bits as CentralUpdate under `bsp` with one group.
//
// Limits: the values and the optimizer's state of the part are here and nowhere else, so a group
// that works so cannot change its members.
class DistributedUpdate : public PartUpdate {
 public:
  // One entry of `configs` per entry of `shards`. INVALID_ARGUMENT: as OwnedValues.
  static absl::StatusOr<std::unique_ptr<DistributedUpdate>> Create(
      ServerLink& link, GroupMachine& group, std::vector<PartShards> shards,
      std::span<const OwnedValues::Config> configs);

  void Apply(absl::Time now, PartStep step, Outbox& outbox) override;
  void Fetch(absl::Time now, PartStep step, Outbox& outbox) override;

 private:
  DistributedUpdate(ServerLink& link, GroupMachine& group, std::vector<PartShards> shards,
                    std::vector<OwnedValues> owned)
      : group_(group), first_values_(link, shards, {}), shards_(shards), owned_(std::move(owned)) {}

  GroupMachine& group_;
  CentralUpdate first_values_;
  const std::vector<PartShards> shards_;
  std::vector<OwnedValues> owned_;
  bool fetched_ = false;
};

}  // namespace covey::worker
