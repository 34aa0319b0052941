// SPDX-License-Identifier: Apache-2.0
// Data sets of images: the content of the file of images and, after it, that of the file of labels,
// both before their compression.
#include "worker/examples/fashion_mnist/dataset.h"

#include <string>

#include "common/base/check.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"
#include "worker/examples/fashion_mnist/dataset_files.h"

namespace covey {

std::vector<std::string> FuzzSeeds() {
  return {JoinFuzzParts({fashion_mnist::ImagesFile(1)}) + fashion_mnist::LabelsFile("\3"),
          JoinFuzzParts({fashion_mnist::ImagesFile(2)}) +
              fashion_mnist::LabelsFile(std::string("\0\x09", 2))};
}

bool FuzzOne(std::span<const uint8_t> input) {
  static const fashion_mnist::DatasetFiles files;
  files.WriteImages(std::string(FuzzText(TakeFuzzPart(input))));
  files.WriteLabels(std::string(FuzzText(input)));
  const auto dataset =
      fashion_mnist::Dataset::Load(files.directory(), fashion_mnist::Split::kTrain);
  if (!dataset.ok()) {
    COVEY_CHECK(!dataset.status().message().empty());
    return false;
  }
  COVEY_CHECK(dataset->size() > 0);
  return true;
}

}  // namespace covey
