// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "absl/time/time.h"

namespace covey::worker {

// The times at which a bucket waited for servers; at all others it was with its group. A program
// that waited for one of the bucket's tensors divides its time by this (step_timer.h):
//
//   servers   From the start of the update of this member's part until the part's new values are
//             there: the pushes, the servers' work, what a contract waits for (other groups), and
//             the replies. Also a pull of values.
//   group     The rest. The collectives, and with them members that are late, also those that still
//             wait for their own servers. An update on the member itself. A change of the group's
//             members, from the loss of one until the next run begins. In that time the servers'
//             late replies to an interrupted run count for the group, too.
//
// A submission that waits for the step before waits for what that step waits for. What passes after
// a run, until the program's thread has woken up, belongs to the last stage that took time. So in a
// group of one, all that a step with servers waits for is theirs.
//
// Remembers the newest kSpans times. More of them belong to one request only when its step was
// interrupted repeatedly; then older ones count for the group.
//
// A value. Deterministic.
class ServerTimes {
 public:
  static constexpr size_t kSpans = 4;

  // The bucket begins to wait for servers. Without effect while it does.
  void Begin(absl::Time now);
  // It waits for its group. Without effect while it does.
  void End(absl::Time now);
  // A run is over. When its last stages took no time, the stage before them continues.
  void RunOver(absl::Time now);

  // How much of the time between the two was waited for servers.
  absl::Duration Within(absl::Time from, absl::Time to) const;

 private:
  struct Span {
    absl::Time begin = absl::InfinitePast();
    absl::Time end = absl::InfinitePast();
  };

  std::array<Span, kSpans> spans_;  // newest first
};

}  // namespace covey::worker
