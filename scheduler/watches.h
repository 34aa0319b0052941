// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"

namespace covey::scheduler {

// Requests for a view that does not exist yet. A watcher that repeats its request, because the
// first may have been lost, replaces its earlier one.
//
// Limits: `max` watchers. Actor-confined, deterministic.
class Watches {
 public:
  explicit Watches(size_t max) : max_(max) {}

  size_t max() const { return max_; }

  // `request` holds a WatchViewRequest; `until` never decreases from call to call. False: there are
  // too many watchers.
  bool Add(const Message& request, absl::Time until);
  // Takes out the watches that know only older views, in the order of their requests.
  std::vector<Message> TakeOlderThan(Epoch epoch);
  // Takes out the watches that have waited until `now`.
  std::vector<Message> TakeExpired(absl::Time now);
  // InfiniteFuture() when there is no watch.
  absl::Time next_deadline() const;

 private:
  using Watcher = std::tuple<Address, Incarnation, uint64_t>;  // the last: its connection
  struct Watch {
    Message request;
    absl::Time until;
  };

  static Watcher WatcherOf(const Message& request) {
    return {request.from(), request.incarnation(), request.connection};
  }

  const size_t max_;
  uint64_t last_number_ = 0;
  std::map<uint64_t, Watch>
      watches_;  // numbered in the order of requests, which is that of `until`
  std::map<Watcher, uint64_t> numbers_;
};

}  // namespace covey::scheduler
