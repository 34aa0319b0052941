// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/fashion_mnist/model.h"

#include <cmath>
#include <utility>

// Eigen uses one thread, so that equal inputs give equal bits. The packed copies of a matrix
// product's operands stay on the stack, so that a step allocates nothing.
#define EIGEN_DONT_PARALLELIZE
#define EIGEN_STACK_ALLOCATION_LIMIT (2 << 20)
#include <eigen3/Eigen/Core>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace covey::fashion_mnist {
namespace {

template <typename Scalar>
using Matrix = Eigen::Map<Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
template <typename Scalar>
using ConstMatrix =
    Eigen::Map<const Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
template <typename Scalar>
using Row = Eigen::Map<Eigen::Matrix<Scalar, 1, Eigen::Dynamic>>;

// The elements of a weight tensor, its value or its gradient, as a matrix.
template <typename Scalar>
Matrix<Scalar> AsMatrix(const Tensor<Scalar>& tensor, std::span<Scalar> elements) {
  return {elements.data(), tensor.shape[0], tensor.shape[1]};
}

template <typename Scalar>
Row<Scalar> AsRow(std::span<Scalar> elements) {
  return {elements.data(), static_cast<Eigen::Index>(elements.size())};
}

// Replaces the logits of one sample by the gradient of `weight` times its cross-entropy, which is
// weight * (softmax - one_hot(label)). Returns the cross-entropy.
template <typename Scalar>
double SoftmaxCrossEntropy(Row<Scalar> logits, size_t label, Scalar weight) {
  // Relative to the largest logit, so that exp() cannot overflow.
  logits.array() -= logits.maxCoeff();
  const Scalar label_logit = logits[label];
  logits = logits.array().exp();
  const Scalar sum = logits.sum();
  logits *= weight / sum;
  logits[label] -= weight;
  return std::log(static_cast<double>(sum)) - static_cast<double>(label_logit);
}

}  // namespace

template <typename Scalar>
Perceptron<Scalar>::Perceptron(const Options& options)
    : options_(options),
      hidden_(options.batch_size_max * options.hidden),
      hidden_gradient_(options.batch_size_max * options.hidden),
      output_gradient_(options.batch_size_max * options.classes) {
  COVEY_CHECK(options.inputs > 0 && options.hidden > 0 && options.classes > 0);
  COVEY_CHECK(options.batch_size_max > 0);
  const auto inputs = static_cast<int64_t>(options.inputs);
  const auto hidden = static_cast<int64_t>(options.hidden);
  const auto classes = static_cast<int64_t>(options.classes);
  // The bounds preserve the variance of the activations from layer to layer: He et al. 2015 where a
  // ReLU follows, LeCun et al. 1998 where none does.
  AddTensor("hidden/weight", {inputs, hidden}, std::sqrt(6.0 / inputs));
  AddTensor("hidden/bias", {hidden}, 0);
  AddTensor("output/weight", {hidden, classes}, std::sqrt(3.0 / hidden));
  AddTensor("output/bias", {classes}, 0);
  COVEY_CHECK(tensors_.size() == kTensorCount);
}

template <typename Scalar>
void Perceptron<Scalar>::AddTensor(const std::string& name, std::vector<int64_t> shape,
                                   double initial_bound) {
  int64_t elements = 1;
  for (const int64_t dimension : shape) elements *= dimension;
  // A span stays valid when blocks_ grows: moving a vector leaves its elements where they are.
  const std::span<Scalar> value = blocks_.emplace_back(elements);
  const std::span<Scalar> gradient = blocks_.emplace_back(elements);
  tensors_.push_back({.name = name,
                      .shape = std::move(shape),
                      .initial_bound = initial_bound,
                      .value = value,
                      .gradient = gradient});
}

template <typename Scalar>
absl::StatusOr<typename Perceptron<Scalar>::Outcome> Perceptron<Scalar>::Forward(
    std::span<const Scalar> images, std::span<const uint8_t> labels, TensorHook wait) {
  COVEY_CHECK(labels.size() <= options_.batch_size_max);
  COVEY_CHECK(images.size() == labels.size() * options_.inputs);
  images_ = images;
  batch_size_ = labels.size();
  const ConstMatrix<Scalar> input(images.data(), batch_size_, options_.inputs);
  Matrix<Scalar> hidden(hidden_.data(), batch_size_, options_.hidden);
  Matrix<Scalar> output(output_gradient_.data(), batch_size_, options_.classes);

  const Tensor<Scalar>& hidden_weight = tensors_[kHiddenWeight];
  COVEY_RETURN_IF_ERROR(wait(kHiddenWeight));
  hidden.noalias() = input * AsMatrix(hidden_weight, hidden_weight.value);
  COVEY_RETURN_IF_ERROR(wait(kHiddenBias));
  hidden.rowwise() += AsRow(tensors_[kHiddenBias].value);
  hidden = hidden.cwiseMax(Scalar{0});

  const Tensor<Scalar>& output_weight = tensors_[kOutputWeight];
  COVEY_RETURN_IF_ERROR(wait(kOutputWeight));
  output.noalias() = hidden * AsMatrix(output_weight, output_weight.value);
  COVEY_RETURN_IF_ERROR(wait(kOutputBias));
  output.rowwise() += AsRow(tensors_[kOutputBias].value);

  Outcome outcome;
  for (size_t i = 0; i < batch_size_; ++i) {
    COVEY_CHECK(labels[i] < options_.classes);
    Row<Scalar> logits(&output(i, 0), options_.classes);
    Eigen::Index guess = 0;
    logits.maxCoeff(&guess);
    outcome.correct += static_cast<size_t>(guess) == labels[i];
    outcome.loss += SoftmaxCrossEntropy(logits, labels[i], Scalar{1} / batch_size_) / batch_size_;
  }
  return outcome;
}

template <typename Scalar>
absl::Status Perceptron<Scalar>::Backward(TensorHook ready) {
  const ConstMatrix<Scalar> input(images_.data(), batch_size_, options_.inputs);
  const ConstMatrix<Scalar> hidden(hidden_.data(), batch_size_, options_.hidden);
  const ConstMatrix<Scalar> output_gradient(output_gradient_.data(), batch_size_, options_.classes);
  Matrix<Scalar> hidden_gradient(hidden_gradient_.data(), batch_size_, options_.hidden);

  AsRow(tensors_[kOutputBias].gradient) = output_gradient.colwise().sum();
  COVEY_RETURN_IF_ERROR(ready(kOutputBias));

  // The output weight is last used before it is handed over.
  const Tensor<Scalar>& output_weight = tensors_[kOutputWeight];
  hidden_gradient.noalias() =
      output_gradient * AsMatrix(output_weight, output_weight.value).transpose();
  hidden_gradient.array() *= (hidden.array() > Scalar{0}).template cast<Scalar>();
  AsMatrix(output_weight, output_weight.gradient).noalias() = hidden.transpose() * output_gradient;
  COVEY_RETURN_IF_ERROR(ready(kOutputWeight));

  AsRow(tensors_[kHiddenBias].gradient) = hidden_gradient.colwise().sum();
  COVEY_RETURN_IF_ERROR(ready(kHiddenBias));

  const Tensor<Scalar>& hidden_weight = tensors_[kHiddenWeight];
  AsMatrix(hidden_weight, hidden_weight.gradient).noalias() = input.transpose() * hidden_gradient;
  return ready(kHiddenWeight);
}

template class Perceptron<float>;
template class Perceptron<double>;

}  // namespace covey::fashion_mnist
