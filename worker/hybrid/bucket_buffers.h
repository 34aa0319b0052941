// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "common/base/buffer.h"
#include "worker/hybrid/tensor_request.h"
#include "worker/layout/model_layout.h"

namespace covey::worker {

// The memory of one bucket beside that of the program: the gradient that is summed in place, the
// values of fused tensors and of steps that lag, what encodings lose, and what a step that is
// interrupted is done again from. Each buffer is as large as the bucket and allocated when it is
// first needed.
//
// The gradient's memory is shared with the pushes of a step, and a push that is not durable may
// refer to it when the next step begins. `release` is called then, which copies such pushes. If a
// frame that is being sent refers to it even so, the gradient gets new memory.
//
// Actor-confined. Deterministic.
class BucketBuffers {
 public:
  using Release = std::function<void(const Buffer&)>;

  struct Options {
    // A step starts with the gradient times its samples; else with the gradient, or with zero where
    // there are no samples.
    bool weighted = true;
    bool error_feedback = false;
  };
  BucketBuffers(const Bucket& bucket, const Options& options, Release release);

  // What a step starts with. Its collectives overwrite both spans.
  struct StepInput {
    std::span<float> gradient;
    Buffer gradient_memory;  // what `gradient` lies in
    // Of the collectives' error feedback; empty = none.
    std::span<float> residual;
    // An earlier run of the same step was interrupted.
    bool repeats = false;
  };
  // The gradient of the requests, as Options says; without requests, zero. Keeps what encoding
  // overwrites.
  StepInput BeginStep(const std::vector<TensorRequest>& requests);
  // The program gets its gradient back before the step is over: keeps what summing overwrites.
  void KeepGradient();
  // The same input as that step had. `requests`: those of the step; empty: its gradient was kept,
  // or was zero.
  enum class Without { kKept, kZero };
  StepInput RepeatStep(const std::vector<TensorRequest>& requests, Without without);

  // Memory for values where the program's own does not do.
  std::span<float> values();
  // Copies a tensor's part of values() to its request.
  void CopyValuesTo(const TensorRequest& request) const;

 private:
  // The memory that the next step's gradient goes to, with unspecified bytes.
  std::span<float> TakeGradient();
  void PackGradient(const std::vector<TensorRequest>& requests, std::span<float> gradient) const;
  StepInput Input(std::span<float> gradient) {
    return {.gradient = gradient, .gradient_memory = gradient_, .residual = residual_};
  }

  const std::vector<Bucket::Piece> pieces_;
  const size_t elements_;
  const bool weighted_;
  const Release release_;
  Buffer gradient_;
  std::vector<float> values_;
  std::vector<float> residual_;
  std::vector<float> kept_gradient_;
  std::vector<float> kept_residual_;
};

}  // namespace covey::worker
