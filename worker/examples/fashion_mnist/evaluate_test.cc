#include "worker/examples/fashion_mnist/evaluate.h"

#include "gtest/gtest.h"
#include "worker/examples/fashion_mnist/dataset_files.h"

namespace covey::fashion_mnist {
namespace {

TEST(AccuracyTest, CountsEverySampleOnceWhateverTheBatchSize) {
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
    // All weights are zero, so the output's bias decides: always class 4.
    model.tensors().back().value[4] = 1;
    EXPECT_EQ(Accuracy(model, *dataset), 4.0 / 7) << batch_size_max;
  }
}

}  // namespace
}  // namespace covey::fashion_mnist
