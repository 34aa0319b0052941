// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "common/collective/part_range.h"
#include "common/runtime/actor.h"
#include "worker/collective/collective.h"
#include "worker/group/communicator.h"

namespace covey::worker {

// A reduce-scatter of gradients by Adasum (adasum.h). In place of the sum, the own part gets the
// result times the samples of all members, so that what follows divides by them as it does with a
// sum:
//
//   exchange ─▶ products of ─▶ all-reduce of ─▶ coefficients, the same ─▶ own part
//   of parts    the own part   these            on all members
//
// A member without samples gives zeros, and so does not count.
//
// `reduce`: of float32, as Communicator::Start takes it; `arrived` and `done` are called as there.
// `tensors`: what of the data has coefficients of its own. `bucket` numbers the stream of the
// products. The communicator outlives the call of `done`.
void StartAdasum(absl::Time now, Communicator& group, uint32_t bucket,
                 std::vector<PartRange> tensors, Collective reduce, Outbox& outbox);

}  // namespace covey::worker
