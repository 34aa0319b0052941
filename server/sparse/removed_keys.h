// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "common/cluster/limits.h"

namespace covey::server {

// The keys whose rows went, and when, for readers that ask what has changed (tombstones). It holds
// the newest ones: a quarter as many as the shard has entries, within bounds. A reader that goes on
// from an earlier version has to read all rows again, which then costs it about as much.
//
// Actor-confined. Deterministic. Memory: 16 bytes per key.
class RemovedKeys {
 public:
  static constexpr size_t kAlwaysKept = 1024;

  // The row of a key goes with the update that makes this version, from a shard with this many
  // entries. Precondition: the version is not below that of the last call.
  void Add(uint64_t mixed, uint64_t version, size_t entries) {
    removed_.push_back({mixed, version});
    const size_t max = std::clamp(entries / 4, kAlwaysKept, kRemovedKeysPerShardMax);
    for (; removed_.size() > max; removed_.pop_front()) floor_ = removed_.front().version;
  }
  // Nothing is known of what went up to this version.
  void Restart(uint64_t version) {
    removed_.clear();
    floor_ = version;
  }

  // The lowest version of a reader after which all keys that went are known.
  uint64_t floor() const { return floor_; }
  // Calls visit(MixBits(key)) for each row that went after the version, in order of time; a key may
  // come several times. Precondition: version >= floor().
  template <typename Visit>
  void VisitAfter(uint64_t version, const Visit& visit) const {
    auto next = std::upper_bound(
        removed_.begin(), removed_.end(), version,
        [](uint64_t bound, const Removed& removed) { return bound < removed.version; });
    for (; next != removed_.end(); ++next) visit(next->mixed);
  }
  size_t bytes() const { return removed_.size() * sizeof(Removed); }

 private:
  struct Removed {
    uint64_t mixed;  // MixBits(key)
    uint64_t version;
  };

  std::deque<Removed> removed_;  // by version
  uint64_t floor_ = 0;
};

}  // namespace covey::server
