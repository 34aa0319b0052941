// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/base/status_macros.h"
#include "common/cluster/ids.h"
#include "worker/update/round_progress.h"

namespace covey::worker {

// Which step's mean gradient the bucket's memory holds, where the program updates. No server has
// it: after a loss, a member that has the mean of a step gives it to those that do not.
//
// The memory holds it until the next step writes there. By then every member has it, because all of
// them have begun the next step. Actor-confined.
class MeanMemory {
 public:
  // 0 = none.
  Step step() const { return step_; }
  // Training examples of all members behind the newest mean, also when that has been overwritten.
  uint64_t samples() const { return samples_; }

  void Take(Step step, uint64_t samples) {
    step_ = step;
    samples_ = samples;
  }
  // The memory is written to.
  void Forget() { step_ = Step(); }

  // What other members need beside the values.
  Buffer Save() const {
    return EncodeRoundProgress({.learned = step_, .tables = {{.samples = samples_}}});
  }
  // INVALID_ARGUMENT: the bytes are not those of Save; nothing has changed.
  absl::Status Load(const Buffer& bytes) {
    COVEY_ASSIGN_OR_RETURN(const RoundProgress told, DecodeRoundProgress(bytes, 1));
    Take(told.learned, told.tables[0].samples);
    return absl::OkStatus();
  }

 private:
  Step step_;
  uint64_t samples_ = 0;
};

}  // namespace covey::worker
