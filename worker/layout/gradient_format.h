// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/cluster/ids.h"
#include "common/tensor/wire_format.h"

namespace covey::worker {

// How the gradients of a table travel, inside the group and to the servers; the same on all
// members. A value.
struct GradientFormat {
  WireFormat format = WireFormat::kFloat32;
  // What the format loses is kept on this member, and added to the next gradient.
  bool error_feedback = false;
  // At each multiple of this step, gradients travel as float32 with all that was kept, so that
  // nothing is left: a snapshot after such a step lacks nothing. 0 = at none.
  uint64_t flush_steps = 0;

  bool FlushesAt(Step step) const {
    return error_feedback && flush_steps != 0 && step.value() % flush_steps == 0;
  }
  WireFormat At(Step step) const { return FlushesAt(step) ? WireFormat::kFloat32 : format; }
};

}  // namespace covey::worker
