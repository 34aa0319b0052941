#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/cluster/ids.h"
#include "proto/log.pb.h"
#include "proto/scheduler.pb.h"
#include "scheduler/groups/groups.h"

namespace covey::scheduler {

// Who is asked to go, and how many are wanted. Node.draining is the whole of it: Chains take a
// draining server's shards elsewhere, Groups plan a draining worker out, and the process ends by
// itself. Each change raises the epoch by one.
//
// Edits the view in `state`, which outlives it, as `groups` does. Actor-confined, deterministic.
class Fleet {
 public:
  Fleet(proto::LogRecord& state, Groups& groups) : state_(state), groups_(groups) {}

  struct Change {
    Epoch epoch;                // since which it holds, at the latest
    std::string decision = "";  // empty: it was so already
  };
  // Asks a node to go, or to stay after all; `why` is the evidence, for people. Idempotent.
  // NOT_FOUND: no server or worker of this name is alive. FAILED_PRECONDITION: it is the only server
  // that does not drain, and has shards.
  absl::StatusOr<Change> Drain(const proto::DrainRequest& request, absl::string_view why);

  // Notes how many are wanted, and drains those beyond it, highest rank first. Who drains already
  // is not asked to stay. Idempotent. INVALID_ARGUMENT: 0, or more than a job can have.
  absl::StatusOr<Change> Scale(const proto::ScaleRequest& request, absl::string_view why);

 private:
  // "server-3, server-2": those of the role that are more than `wanted`, now draining.
  std::string DrainSurplus(proto::Role role, uint32_t wanted);
  // What this means for its group; "" = nothing.
  std::string SetDraining(proto::Node& node, bool draining);

  proto::LogRecord& state_;
  Groups& groups_;
};

}  // namespace covey::scheduler
