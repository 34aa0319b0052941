// SPDX-License-Identifier: Apache-2.0
#include "client/engine/sending/version_floor.h"

#include <algorithm>

namespace covey::client {

Version VersionFloor::Of(ShardId shard, uint64_t generation) const {
  const auto found = seen_.find(shard);
  const bool same = found != seen_.end() && found->second.generation == generation;
  return same ? found->second.newest : Version();
}

VersionFloor::Base VersionFloor::BaseOf(ShardId shard) const {
  const auto found = seen_.find(shard);
  if (found == seen_.end()) return {};
  return {.generation = found->second.generation, .version = found->second.values};
}

VersionFloor::Seen& VersionFloor::SeenIn(ShardId shard, uint64_t generation) {
  Seen& seen = seen_[shard];
  if (seen.generation != generation) seen = {.generation = generation, .newest = {}, .values = {}};
  return seen;
}

void VersionFloor::Observe(ShardId shard, uint64_t generation, Version version) {
  Seen& seen = SeenIn(shard, generation);
  seen.newest = std::max(seen.newest, version);
}

void VersionFloor::ObserveValues(ShardId shard, uint64_t generation, Version version) {
  Observe(shard, generation, version);
  SeenIn(shard, generation).values = version;
}

}  // namespace covey::client
