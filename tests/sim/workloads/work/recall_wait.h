// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "absl/time/time.h"
#include "client/engine/client_actor.h"
#include "proto/scheduler.pb.h"

namespace covey::sim {

// The requests of a worker that holds examples, which wait until the scheduler recalls some; as
// worker::DataSource makes them. Belongs to a script, which lives as long as its client.
class RecallWait {
 public:
  // Sends `request`, which tells nothing, unless one is under way.
  void Send(absl::Time now, proto::WorkRequest request, client::ClientActor& client,
            Outbox& outbox);
  // Whether the scheduler has recalled examples since the last call.
  bool TakeRecall() { return std::exchange(is_recalled_, false); }

 private:
  bool under_way_ = false;
  bool is_recalled_ = false;
  absl::Time again_ = absl::InfinitePast();
};

}  // namespace covey::sim
