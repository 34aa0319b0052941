#pragma once

#include <cstdint>

#include "worker/layout/fusion_plan.h"

namespace covey::worker {

// Where a table's optimizer runs.
enum class Synchronization {
  // On the servers, under the table's contract with the other groups.
  kCentralized,
  // On the members, each for its part: an all-reduce with the update in the middle. No server is on
  // the path; the servers keep the first values. For one group and tables under `bsp`, where it
  // gives the same bits as kCentralized.
  kDistributed,
};

// Which wire formats carry on what rounding lost to the
// next step. Costs as much memory as the gradients.
enum class ErrorFeedback { kNever, kInt8, kAlways };

// How a model trains. The same on all members.
struct HybridOptions {
  Synchronization synchronization = Synchronization::kCentralized;
  // 0, or 1: a step computes with the values of the step before last, so that a whole step's
  // computation hides the communication. Gradients are one step late; costs a copy of gradients and
  // values.
  uint32_t lag = 0;
  FusionLimits fusion;
  ErrorFeedback error_feedback = ErrorFeedback::kInt8;
};

}  // namespace covey::worker
