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
// Each new view costs a reply per watcher. When thousands of nodes start, views come faster than
// that many replies can be sent, and heartbeats would wait behind them. So the replies to all
// watchers leave together, and the next ones once kReplyTime for each of these has passed, with all
// views of that time as one change.
//
// Limits: `max` watchers. Actor-confined, deterministic.
class Watches {
 public:
  // Of each reply. Several times what it costs the scheduler (BENCHMARKS.md, "One scheduler
  // process"), so that most of its time is left for everything else.
  static constexpr absl::Duration kReplyTime = absl::Microseconds(100);
  // Replies that need not wait: a cluster of this size hears of each view at once.
  static constexpr int kRepliesAtOnce = 64;

  explicit Watches(size_t max) : max_(max) {}

  size_t max() const { return max_; }

  // `request` holds a WatchViewRequest; `until` never decreases from call to call. False: there are
  // too many watchers.
  bool Add(const Message& request, absl::Time until);
  // Whether a watch that knows only an older view may be answered at once; if not, add it.
  bool MayReply(absl::Time now);
  // Takes out the watches that know only views older than `epoch`, in the order of their requests.
  // Takes out none while earlier replies need their time: NextWake says when to call again.
  std::vector<Message> TakeOlderThan(Epoch epoch, absl::Time now);
  // Takes out the watches that have waited until `now`.
  std::vector<Message> TakeExpired(absl::Time now);
  // When one of the Take methods is due; InfiniteFuture() when there is no watch.
  absl::Time NextWake() const;

 private:
  using Watcher = std::tuple<Address, Incarnation, uint64_t>;  // the last: its connection
  struct Watch {
    Message request;
    absl::Time until;
  };

  static Watcher WatcherOf(const Message& request) {
    return {request.from(), request.incarnation(), request.connection};
  }

  // When news may leave again.
  absl::Time NextNews() const { return replied_until_ - kRepliesAtOnce * kReplyTime; }

  const size_t max_;
  // The replies so far have had their time by then.
  absl::Time replied_until_ = absl::InfinitePast();
  bool has_news_ = false;  // that wait for NextNews
  uint64_t last_number_ = 0;
  std::map<uint64_t, Watch>
      watches_;  // numbered in the order of requests, which is that of `until`
  std::map<Watcher, uint64_t> numbers_;
};

}  // namespace covey::scheduler
