#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/random.h"

namespace covey::sim {

// One thing that goes wrong, and is put right again after a while.
struct Fault {
  enum class Kind {
    kCrash,            // restarts with a new incarnation
    kPause,            // stands still, then goes on as if nothing had happened
    kSlow,             // every call takes much longer
    kPartition,        // nothing passes between the two
    kOneWayPartition,  // nothing passes from `target` to `other`
    kClog,             // what `target` sends to `other` waits
    kIsolation,        // nothing passes between `target` and anybody else
    kDisconnect,       // every connection between the two breaks once
  };
  Kind kind = Kind::kCrash;
  absl::Duration at;
  absl::Duration duration;
  // Positions in the cluster's list of processes.
  size_t target = 0;
  size_t other = 0;
};

// All faults of a run, drawn before it starts: a value that can be printed. In order of time.
using FaultPlan = std::vector<Fault>;

// `processes`: how many there are; the first `hubs` of them are those that the others talk to, so a
// fault between two has one of them on a side. Each kind is tried in a share of the runs only, so
// that one fault can be met without the noise of the others.
FaultPlan DrawFaults(Random random, size_t processes, size_t hubs, absl::Duration safety);

// "crash"
const char* KindName(Fault::Kind kind);
// One line: "crash server-1 at 2.5s for 300ms".
std::string Describe(const Fault& fault, const std::vector<std::string>& names);

}  // namespace covey::sim
