// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "common/base/mutex.h"

namespace covey::scheduler {

// How many calls of the control plane may be under way, asked on gRPC's threads before a call costs
// the scheduler's loop anything. Nodes whose requests have been answered well are known, and each
// has room of its own; everybody else is a stranger and shares what is left for strangers, a part
// of it per host. So who floods takes nothing from nodes, nor everything from other strangers.
//
// Thread-safe.
class Admission {
 public:
  static constexpr size_t kCallsPerNodeMax = 32;
  static constexpr size_t kCallsOfStrangersMax = 512;
  static constexpr size_t kCallsOfStrangersPerHostMax = 256;

  // A place that a call has taken, to be given back when it is over.
  struct Place {
    uint64_t node = 0;  // 0 = a stranger's
    std::string host;   // of a stranger
  };

  // `node` is who the caller says it is, 0 = nobody; `peer` is gRPC's name of the connection:
  // "ipv4:10.0.0.7:41234". RESOURCE_EXHAUSTED: too many calls are under way.
  absl::Status Enter(uint64_t node, const std::string& peer, Place& place);
  void Leave(const Place& place);

  // The scheduler has accepted, or refused, a request of `node`.
  void Know(uint64_t node);
  void Forget(uint64_t node);

  // Calls that were refused so far.
  uint64_t refused();

 private:
  Mutex mutex_;
  absl::flat_hash_set<uint64_t> known_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, size_t> of_nodes_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, size_t> of_hosts_ ABSL_GUARDED_BY(mutex_);
  size_t of_strangers_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace covey::scheduler
