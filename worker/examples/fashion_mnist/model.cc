// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/fashion_mnist/model.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace covey::fashion_mnist {
namespace {

// A row-major matrix in memory of another owner.
template <typename Scalar>
struct Matrix {
  const Scalar* data = nullptr;
  size_t rows = 0;
  size_t columns = 0;
  bool transposed = false;  // read as columns x rows

  Matrix Transposed() const { return {data, rows, columns, !transposed}; }
  CBLAS_TRANSPOSE order() const { return transposed ? CblasTrans : CblasNoTrans; }
  size_t height() const { return transposed ? columns : rows; }
  size_t width() const { return transposed ? rows : columns; }
};

// The elements of a weight tensor, its value or its gradient, as a matrix.
template <typename Scalar>
Matrix<Scalar> AsMatrix(const Tensor<Scalar>& tensor, std::span<const Scalar> elements) {
  return {elements.data(), static_cast<size_t>(tensor.shape[0]),
          static_cast<size_t>(tensor.shape[1])};
}

// product = left * right. OpenBLAS chooses its kernels by the processor that it runs on.
void Multiply(const Matrix<float>& left, const Matrix<float>& right, float* product) {
  cblas_sgemm(CblasRowMajor, left.order(), right.order(), left.height(), right.width(),
              left.width(), 1, left.data, left.columns, right.data, right.columns, 0, product,
              right.width());
}

void Multiply(const Matrix<double>& left, const Matrix<double>& right, double* product) {
  cblas_dgemm(CblasRowMajor, left.order(), right.order(), left.height(), right.width(),
              left.width(), 1, left.data, left.columns, right.data, right.columns, 0, product,
              right.width());
}

template <typename Scalar>
void AddToEachRow(std::span<const Scalar> bias, std::span<Scalar> rows) {
  for (size_t start = 0; start < rows.size(); start += bias.size()) {
    for (size_t i = 0; i < bias.size(); ++i) rows[start + i] += bias[i];
  }
}

template <typename Scalar>
void SumRows(std::span<const Scalar> rows, std::span<Scalar> sum) {
  std::fill(sum.begin(), sum.end(), Scalar{0});
  for (size_t start = 0; start < rows.size(); start += sum.size()) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += rows[start + i];
  }
}

// Replaces the logits of one sample by the gradient of `weight` times its cross-entropy, which is
// weight * (softmax - one_hot(label)). Returns the cross-entropy.
template <typename Scalar>
double SoftmaxCrossEntropy(std::span<Scalar> logits, size_t label, Scalar weight) {
  // Relative to the largest logit, so that exp() cannot overflow.
  const Scalar largest = *std::max_element(logits.begin(), logits.end());
  const Scalar label_logit = logits[label] - largest;
  Scalar sum = 0;
  for (Scalar& logit : logits) {
    logit = std::exp(logit - largest);
    sum += logit;
  }
  for (Scalar& logit : logits) logit *= weight / sum;
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
  // So that equal inputs give equal bits, and the processes of a machine share its cores.
  openblas_set_num_threads(1);
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
  const Matrix<Scalar> input{images.data(), batch_size_, options_.inputs};
  const std::span<Scalar> hidden = std::span(hidden_).first(batch_size_ * options_.hidden);
  const std::span<Scalar> output =
      std::span(output_gradient_).first(batch_size_ * options_.classes);

  const Tensor<Scalar>& hidden_weight = tensors_[kHiddenWeight];
  COVEY_RETURN_IF_ERROR(wait(kHiddenWeight));
  Multiply(input, AsMatrix<Scalar>(hidden_weight, hidden_weight.value), hidden.data());
  COVEY_RETURN_IF_ERROR(wait(kHiddenBias));
  AddToEachRow<Scalar>(tensors_[kHiddenBias].value, hidden);
  for (Scalar& unit : hidden) unit = std::max(unit, Scalar{0});

  const Tensor<Scalar>& output_weight = tensors_[kOutputWeight];
  COVEY_RETURN_IF_ERROR(wait(kOutputWeight));
  Multiply({hidden.data(), batch_size_, options_.hidden},
           AsMatrix<Scalar>(output_weight, output_weight.value), output.data());
  COVEY_RETURN_IF_ERROR(wait(kOutputBias));
  AddToEachRow<Scalar>(tensors_[kOutputBias].value, output);

  Outcome outcome;
  for (size_t i = 0; i < batch_size_; ++i) {
    COVEY_CHECK(labels[i] < options_.classes);
    const std::span<Scalar> logits = output.subspan(i * options_.classes, options_.classes);
    const auto guess = std::max_element(logits.begin(), logits.end()) - logits.begin();
    outcome.correct += static_cast<size_t>(guess) == labels[i];
    const Scalar weight = static_cast<Scalar>(options_.loss_scale) / batch_size_;
    outcome.loss += SoftmaxCrossEntropy(logits, labels[i], weight) / batch_size_;
  }
  return outcome;
}

template <typename Scalar>
absl::Status Perceptron<Scalar>::Backward(TensorHook ready) {
  const Matrix<Scalar> input{images_.data(), batch_size_, options_.inputs};
  const Matrix<Scalar> hidden{hidden_.data(), batch_size_, options_.hidden};
  const Matrix<Scalar> output_gradient{output_gradient_.data(), batch_size_, options_.classes};
  const Matrix<Scalar> hidden_gradient{hidden_gradient_.data(), batch_size_, options_.hidden};

  SumRows<Scalar>({output_gradient_.data(), batch_size_ * options_.classes},
                  tensors_[kOutputBias].gradient);
  COVEY_RETURN_IF_ERROR(ready(kOutputBias));

  // The output weight is last used before it is handed over.
  const Tensor<Scalar>& output_weight = tensors_[kOutputWeight];
  Multiply(output_gradient, AsMatrix<Scalar>(output_weight, output_weight.value).Transposed(),
           hidden_gradient_.data());
  for (size_t i = 0; i < batch_size_ * options_.hidden; ++i) {
    if (hidden_[i] <= 0) hidden_gradient_[i] = 0;
  }
  Multiply(hidden.Transposed(), output_gradient, output_weight.gradient.data());
  COVEY_RETURN_IF_ERROR(ready(kOutputWeight));

  SumRows<Scalar>({hidden_gradient_.data(), batch_size_ * options_.hidden},
                  tensors_[kHiddenBias].gradient);
  COVEY_RETURN_IF_ERROR(ready(kHiddenBias));

  Multiply(input.Transposed(), hidden_gradient, tensors_[kHiddenWeight].gradient.data());
  return ready(kHiddenWeight);
}

template class Perceptron<float>;
template class Perceptron<double>;

}  // namespace covey::fashion_mnist
