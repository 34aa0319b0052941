// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace covey::fashion_mnist {

// One trainable tensor of a model, row-major. `value` and `gradient` have the number of elements of
// `shape` and point into the model, which outlives them.
template <typename Scalar>
struct Tensor {
  std::string name;
  std::vector<int64_t> shape;
  // Training should start with values uniform in [-initial_bound, initial_bound); 0 = all zero.
  double initial_bound = 0;
  std::span<Scalar> value;
  std::span<Scalar> gradient;
};

// A perceptron with one hidden layer (inputs - ReLU - softmax) trained on mean cross-entropy.
//
// Designed to overlap computation and communication: it announces which tensor it is about to read,
// and hands over each gradient as soon as it is final, last layer first. A step is
//
//   Forward:  wait(0) use 0, wait(1) use 1, wait(2) use 2, wait(3) use 3 -> loss
//   Backward: ready(3), ready(2), ready(1), ready(0)
//
// From ready(i) until the next wait(i) returns, the model neither reads the value nor touches the
// gradient of tensor i, so both may be used by another thread in between.
//
// Thread-safety: actor-confined, except for the promise above. Determinism: pure; one thread, so
// that equal inputs give equal bits. Limits: batches of at most `batch_size_max` samples; the
// constructor allocates all memory. Scalar is float (training) or double (checking gradients).
template <typename Scalar>
class Perceptron {
 public:
  struct Options {
    size_t inputs = 0;
    size_t hidden = 0;
    size_t classes = 0;
    size_t batch_size_max = 0;
    double loss_scale = 1;  // factor of all gradients; not of Outcome::loss
  };
  struct Outcome {
    double loss = 0;     // Mean over the batch; 0 for an empty one.
    size_t correct = 0;  // Samples whose largest output is their label.
  };
  // Called with the index of a tensor. An error ends the step, which returns it.
  using TensorHook = absl::FunctionRef<absl::Status(size_t)>;

  // Every value is initially zero. All sizes must be positive.
  explicit Perceptron(const Options& options);
  // The tensors point into the model.
  Perceptron(const Perceptron&) = delete;
  Perceptron& operator=(const Perceptron&) = delete;

  const Options& options() const { return options_; }
  // In the order in which Forward() needs them.
  std::span<const Tensor<Scalar>> tensors() const { return tensors_; }

  // Classifies `labels.size()` samples; `images` has `inputs` numbers per sample, and must live
  // until Backward() has returned. Labels must be below `classes`. An empty batch is allowed.
  absl::StatusOr<Outcome> Forward(std::span<const Scalar> images, std::span<const uint8_t> labels,
                                  TensorHook wait);

  // Writes the mean gradient over the batch of the last Forward(), all zero if that was empty. Call
  // it at most once per Forward().
  absl::Status Backward(TensorHook ready);

 private:
  // Index into tensors_.
  enum : size_t { kHiddenWeight, kHiddenBias, kOutputWeight, kOutputBias, kTensorCount };

  void AddTensor(const std::string& name, std::vector<int64_t> shape, double initial_bound);

  // Constant after construction.
  const Options options_;
  std::vector<Tensor<Scalar>> tensors_;

  // Storage of the tensors, two blocks per tensor.
  std::vector<std::vector<Scalar>> blocks_;

  // The current batch; the first `batch_size_` rows of each are in use.
  std::span<const Scalar> images_;
  size_t batch_size_ = 0;
  std::vector<Scalar> hidden_;           // After ReLU.
  std::vector<Scalar> hidden_gradient_;  // With respect to the hidden layer before ReLU.
  std::vector<Scalar> output_gradient_;  // With respect to the logits; holds the logits before.
};

extern template class Perceptron<float>;
extern template class Perceptron<double>;

}  // namespace covey::fashion_mnist
