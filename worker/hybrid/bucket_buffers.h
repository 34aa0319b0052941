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

  // The gradient: that of the requests times their samples, or zero.
  std::span<float> PackGradient(const std::vector<TensorRequest>& requests);
  std::span<float> ZeroGradient();
  // Memory for values where the program's own does not do.
  std::span<float> values();
  // Copies a tensor's part of values() to its request.
  void CopyValuesTo(const TensorRequest& request) const;
  // Of the collectives' error feedback; empty = none.
  std::span<float> residual() { return residual_; }

  // Before a step: keeps what summing and encoding overwrite. The gradient is kept only where the
  // program gets its own back before the step is over.
  void KeepResidual() { kept_residual_ = residual_; }
  void KeepGradient() { kept_gradient_ = gradient_; }
  // Before the step is done again.
  void RestoreResidual() { residual_ = kept_residual_; }
  std::span<float> RestoreGradient();

 private:
  const std::vector<Bucket::Piece> pieces_;
  const size_t elements_;
  std::vector<float> gradient_;
  std::vector<float> values_;
  std::vector<float> residual_;
  std::vector<float> kept_gradient_;
  std::vector<float> kept_residual_;
};

}  // namespace covey::worker
