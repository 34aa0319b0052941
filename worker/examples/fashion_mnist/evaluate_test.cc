// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/fashion_mnist/evaluate.h"

#include <cmath>

#include "gtest/gtest.h"
#include "worker/examples/fashion_mnist/dataset_files.h"

namespace covey::fashion_mnist {
namespace {

TEST(EvaluateTest, CountsEverySampleOnceWhateverTheBatchSize) {
  const DatasetFiles files;
  files.WriteImages(ImagesFile(7));
  files.WriteLabels(LabelsFile({4, 1, 4, 2, 4, 3, 4}));
  const absl::StatusOr<Dataset> dataset = Dataset::Load(files.directory(), Split::kTrain);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  for (const size_t batch_size_max : {1, 3, 7, 100}) {
    Perceptron<float> model({.inputs = kImagePixels,
                             .hidden = 2,
                             .classes = kClasses,
                             .batch_size_max = batch_size_max});
    // All weights are zero, so the output's bias alone decides: always class 4.
    model.tensors().back().value[4] = 1;
    const Quality quality = Evaluate(model, *dataset);
    EXPECT_EQ(quality.accuracy, 4.0 / 7) << batch_size_max;
    // Softmax of one 1 and nine zeros.
    const double sum = std::exp(1) + 9;
    EXPECT_NEAR(quality.loss, (4 * std::log(sum / std::exp(1)) + 3 * std::log(sum)) / 7, 1e-5);
    EXPECT_EQ(Evaluate(model, *dataset, 2).accuracy, 1.0 / 2);
    EXPECT_EQ(Evaluate(model, *dataset, 0).loss, 0);
  }
}

}  // namespace
}  // namespace covey::fashion_mnist
