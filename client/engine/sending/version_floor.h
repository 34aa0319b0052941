// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "common/cluster/ids.h"

namespace covey::client {

// The versions that replies have shown of each shard, so that versions never go back: a later
// request asks for at least the newest version seen. A new generation of a shard is a new history;
// versions of an earlier one say nothing about it. Actor-confined. Pure.
class VersionFloor {
 public:
  // The values that were last copied out of a shard, on which the next gradient is computed.
  struct Base {
    uint64_t generation = 0;
    Version version;
  };

  // The lowest version that a reply of this generation may show; zero = any.
  Version Of(ShardId shard, uint64_t generation) const;
  // Zero = no values have been read yet.
  Base BaseOf(ShardId shard) const;

  // A reply has shown this version.
  void Observe(ShardId shard, uint64_t generation, Version version);
  // The same, and its values were copied out.
  void ObserveValues(ShardId shard, uint64_t generation, Version version);

 private:
  struct Seen {
    uint64_t generation = 0;
    Version newest;
    Version values;
  };

  Seen& SeenIn(ShardId shard, uint64_t generation);

  absl::flat_hash_map<ShardId, Seen> seen_;
};

}  // namespace covey::client
