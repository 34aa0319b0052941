// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/time/time.h"

namespace covey::scheduler {

// How silence is judged. A value.
struct MembershipOptions {
  // Interval at which nodes send heartbeats.
  absl::Duration heartbeat = absl::Milliseconds(500);
  // No node is declared dead after less silence than this.
  absl::Duration silence_min = absl::Milliseconds(2500);
  // After a restart of the scheduler, the time that nodes of the recovered view have for a first
  // heartbeat.
  absl::Duration restart_grace = absl::Seconds(10);
  // Lease term of servers. A server that alone holds a shard stops serving it when the scheduler
  // has not answered for this duration. Unless its process is known to be gone, the shard is
  // re-initialized elsewhere only after that. 0 = no lease: a server that is cut off goes on
  // serving the shard, even while its replacement serves it, too.
  absl::Duration lease = absl::Seconds(30);
  // The machine of the scheduler, as Node.host names it.
  std::string own_host;
};

}  // namespace covey::scheduler
