// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/strings/string_view.h"

namespace covey::factorization {

// The key of a feature's text. The same on every machine; two texts have the same one with a
// chance of 2^-64.
uint64_t TextKey(absl::string_view text);

// Samples with labels 0 and 1; each has features, a key and a value. Keys of a sample may repeat.
class Samples {
 public:
  struct Features {
    std::span<const uint64_t> keys;
    std::span<const float> values;
  };

  size_t size() const { return labels_.size(); }
  float label(size_t sample) const { return labels_[sample]; }
  Features features(size_t sample) const {
    const size_t begin = begins_[sample], count = begins_[sample + 1] - begin;
    return {.keys = std::span(keys_).subspan(begin, count),
            .values = std::span(values_).subspan(begin, count)};
  }
  // Of all samples, in order.
  std::span<const uint64_t> keys() const { return keys_; }

  // The next sample's features, and then its label.
  void AddFeature(uint64_t key, float value) {
    keys_.push_back(key);
    values_.push_back(value);
  }
  void AddSample(bool label) {
    labels_.push_back(label ? 1.0f : 0.0f);
    begins_.push_back(keys_.size());
  }

 private:
  std::vector<float> labels_;
  std::vector<size_t> begins_ = {0};
  std::vector<uint64_t> keys_;
  std::vector<float> values_;
};

// What a run trains with and what it is measured by.
struct DataSet {
  Samples training;
  Samples test;
};

}  // namespace covey::factorization
