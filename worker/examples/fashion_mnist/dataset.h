// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace covey::fashion_mnist {

inline constexpr size_t kImageSide = 28;
inline constexpr size_t kImagePixels = kImageSide * kImageSide;
inline constexpr size_t kClasses = 10;
// A file that claims more is refused before memory is allocated for it (75 MiB at this limit). The
// real dataset has 60,000.
inline constexpr size_t kImagesMax = 100'000;

enum class Split { kTrain, kTest };

// Gray images of clothes with their labels, as published by Zalando as Fashion-MNIST: two gzip
// files in IDX format per split, in Debian's package dataset-fashion-mnist.
//
// Pixels stay bytes (45 MiB for the training split) and become floats batch by batch.
// Thread-safety: immutable.
class Dataset {
 public:
  // Reads one split from `directory`. Errors name the file, the problem and the remedy.
  //   NOT_FOUND: a file cannot be opened.
  //   DATA_LOSS: a file is truncated, damaged, or of another format or shape; a label is no class;
  //   or images and labels differ in number.
  static absl::StatusOr<Dataset> Load(const std::string& directory, Split split);

  size_t size() const { return labels_.size(); }

  // Copies the samples at `indices` (each below size()) into `images`, kImagePixels normalized
  // numbers per sample, and `labels`. Sizes must match. The normalized training pixels have about
  // mean 0 and variance 1.
  void CopyBatch(std::span<const uint32_t> indices, std::span<float> images,
                 std::span<uint8_t> labels) const;

 private:
  Dataset(std::vector<uint8_t> pixels, std::vector<uint8_t> labels);

  std::vector<uint8_t> pixels_;
  std::vector<uint8_t> labels_;
};

}  // namespace covey::fashion_mnist
