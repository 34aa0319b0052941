// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "worker/hybrid/tensor_request.h"
#include "worker/layout/model_layout.h"

namespace covey::worker {

// The memory of one bucket beside that of the program: the gradient that is summed in place, the
// values of fused tensors and of steps that lag, what encodings lose, and what a step that is
// interrupted is done again from. Each buffer is as large as the bucket and allocated when it is
// first needed.
//
// Actor-confined. Deterministic.
class BucketBuffers {
 public:
  BucketBuffers(const Bucket& bucket, bool error_feedback);

  // What a step starts with. Its collectives overwrite both.
  struct StepInput {
    std::span<float> gradient;
    // Of the collectives' error feedback; empty = none.
    std::span<float> residual;
  };
  // The gradient of the requests times their samples; without requests, zero. Keeps what encoding
  // overwrites.
  StepInput BeginStep(const std::vector<TensorRequest>& requests);
  // The program gets its gradient back before the step is over: keeps what summing overwrites.
  void KeepGradient() { kept_gradient_ = gradient_; }
  // The same input as that step had. `requests`: those of the step; empty: its gradient was kept,
  // or was zero.
  enum class Without { kKept, kZero };
  StepInput RepeatStep(const std::vector<TensorRequest>& requests, Without without);

  // Memory for values where the program's own does not do.
  std::span<float> values();
  // Copies a tensor's part of values() to its request.
  void CopyValuesTo(const TensorRequest& request) const;

 private:
  void PackGradient(const std::vector<TensorRequest>& requests);

  const std::vector<Bucket::Piece> pieces_;
  const size_t elements_;
  std::vector<float> gradient_;
  std::vector<float> values_;
  std::vector<float> residual_;
  std::vector<float> kept_gradient_;
  std::vector<float> kept_residual_;
};

}  // namespace covey::worker
