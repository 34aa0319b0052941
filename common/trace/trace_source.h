// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "proto/scheduler.pb.h"

namespace covey {

// What an actor sees of its process's traces (process_trace.h): when they begin and end, and what
// was recorded. Actors themselves decide nothing by it.
class TraceSource {
 public:
  virtual ~TraceSource() = default;

  // Records at most `spans_max` spans from now on, and forgets those of an earlier trace. At most
  // kTraceSpansMax.
  virtual void Begin(uint32_t spans_max) = 0;
  // Ends, and gives the pieces, each of at most kTracePieceBytesMax, the last of which says so. At
  // least one. `clock`: null = unknown.
  virtual std::vector<proto::TracePiece> End(const proto::ClockRelation* clock) = 0;
};

}  // namespace covey
