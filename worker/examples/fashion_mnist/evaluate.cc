// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/fashion_mnist/evaluate.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/check.h"

namespace covey::fashion_mnist {

Quality Evaluate(Perceptron<float>& model, const Dataset& dataset, size_t samples_max) {
  const size_t batch_size_max = model.options().batch_size_max;
  const size_t samples = std::min(samples_max, dataset.size());
  std::vector<uint32_t> indices(batch_size_max);
  std::vector<float> images(batch_size_max * kImagePixels);
  std::vector<uint8_t> labels(batch_size_max);
  size_t correct = 0;
  double loss = 0;
  for (size_t first = 0; first < samples; first += batch_size_max) {
    const size_t count = std::min(batch_size_max, samples - first);
    std::iota(indices.begin(), indices.end(), static_cast<uint32_t>(first));
    const std::span<float> batch_images = std::span(images).first(count * kImagePixels);
    const std::span<uint8_t> batch_labels = std::span(labels).first(count);
    dataset.CopyBatch(std::span(indices).first(count), batch_images, batch_labels);
    // All values have arrived, so the hooks neither wait nor fail.
    const absl::StatusOr<Perceptron<float>::Outcome> outcome =
        model.Forward(batch_images, batch_labels, [](size_t) { return absl::OkStatus(); });
    COVEY_CHECK(outcome.ok());
    correct += outcome->correct;
    loss += outcome->loss * static_cast<double>(count);
  }
  if (samples == 0) return {};
  return {.accuracy = static_cast<double>(correct) / static_cast<double>(samples),
          .loss = loss / static_cast<double>(samples)};
}

}  // namespace covey::fashion_mnist
