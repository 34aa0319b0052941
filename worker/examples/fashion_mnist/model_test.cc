// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/fashion_mnist/model.h"

#include <algorithm>
#include <cmath>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::fashion_mnist {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr size_t kInputs = 7;
constexpr size_t kBatchSizeMax = 5;

absl::Status Proceed(size_t) { return absl::OkStatus(); }

template <typename Scalar>
class Fixture {
 public:
  Fixture()
      : model({.inputs = kInputs, .hidden = 6, .classes = 4, .batch_size_max = kBatchSizeMax}) {
    Random random(1);
    for (const Tensor<Scalar>& tensor : model.tensors()) {
      for (Scalar& element : tensor.value) element = static_cast<Scalar>(random.Uniform() - 0.5);
    }
    for (Scalar& element : images) element = static_cast<Scalar>(random.Uniform() - 0.5);
  }

  typename Perceptron<Scalar>::Outcome Forward(size_t samples = kBatchSizeMax) {
    const absl::StatusOr<typename Perceptron<Scalar>::Outcome> outcome =
        model.Forward(std::span<const Scalar>(images).first(samples * kInputs),
                      std::span<const uint8_t>(labels).first(samples), Proceed);
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return *outcome;
  }

  Perceptron<Scalar> model;
  std::vector<Scalar> images = std::vector<Scalar>(kBatchSizeMax * kInputs);
  std::vector<uint8_t> labels = {0, 3, 2, 1, 3};
};

TEST(PerceptronTest, GradientsMatchFiniteDifferences) {
  Fixture<double> fixture;
  fixture.Forward();
  ASSERT_TRUE(fixture.model.Backward(Proceed).ok());
  constexpr double kStep = 1e-6;
  for (const Tensor<double>& tensor : fixture.model.tensors()) {
    const std::vector<double> gradient(tensor.gradient.begin(), tensor.gradient.end());
    for (size_t i = 0; i < gradient.size(); ++i) {
      const double value = tensor.value[i];
      tensor.value[i] = value + kStep;
      const double loss_above = fixture.Forward().loss;
      tensor.value[i] = value - kStep;
      const double loss_below = fixture.Forward().loss;
      tensor.value[i] = value;
      EXPECT_NEAR(gradient[i], (loss_above - loss_below) / (2 * kStep), 1e-8)
          << tensor.name << " element " << i;
    }
  }
}

TEST(PerceptronTest, LossOfEqualLogitsIsLogOfClasses) {
  Fixture<float> fixture;
  for (const Tensor<float>& tensor : fixture.model.tensors()) {
    std::fill(tensor.value.begin(), tensor.value.end(), 0.0f);
  }
  const Perceptron<float>::Outcome outcome = fixture.Forward();
  EXPECT_NEAR(outcome.loss, std::log(4.0), 1e-6);
  EXPECT_EQ(outcome.correct, 1);  // The first class wins a tie, and one label is 0.
}

TEST(PerceptronTest, DescendingTheGradientLearns) {
  Fixture<float> fixture;
  for (int step = 0; step < 200; ++step) {
    fixture.Forward();
    ASSERT_TRUE(fixture.model.Backward(Proceed).ok());
    for (const Tensor<float>& tensor : fixture.model.tensors()) {
      for (size_t i = 0; i < tensor.value.size(); ++i) {
        tensor.value[i] -= 0.5f * tensor.gradient[i];
      }
    }
  }
  EXPECT_EQ(fixture.Forward().correct, kBatchSizeMax);
}

TEST(PerceptronTest, WeightedGradientsOfPartsAddUpToThatOfTheWhole) {
  Fixture<double> whole;
  whole.Forward();
  ASSERT_TRUE(whole.model.Backward(Proceed).ok());

  Fixture<double> part;
  part.Forward(2);
  ASSERT_TRUE(part.model.Backward(Proceed).ok());
  std::vector<std::vector<double>> sums;
  for (const Tensor<double>& tensor : part.model.tensors()) {
    for (double& element : sums.emplace_back(tensor.gradient.begin(), tensor.gradient.end())) {
      element *= 2;
    }
  }
  std::rotate(part.images.begin(), part.images.begin() + 2 * kInputs, part.images.end());
  std::rotate(part.labels.begin(), part.labels.begin() + 2, part.labels.end());
  part.Forward(3);
  ASSERT_TRUE(part.model.Backward(Proceed).ok());
  for (size_t t = 0; t < sums.size(); ++t) {
    for (size_t i = 0; i < sums[t].size(); ++i) {
      EXPECT_NEAR((sums[t][i] + 3 * part.model.tensors()[t].gradient[i]) / 5,
                  whole.model.tensors()[t].gradient[i], 1e-14);
    }
  }
}

TEST(PerceptronTest, AnEmptyBatchHasAZeroGradient) {
  Fixture<float> fixture;
  fixture.Forward();
  ASSERT_TRUE(fixture.model.Backward(Proceed).ok());
  EXPECT_EQ(fixture.Forward(0).loss, 0);
  ASSERT_TRUE(fixture.model.Backward(Proceed).ok());
  for (const Tensor<float>& tensor : fixture.model.tensors()) {
    EXPECT_THAT(tensor.gradient, Each(0.0f)) << tensor.name;
  }
}

// Both promises behind the overlap: tensors are requested in order and handed over in reverse, and
// in between only the receiver uses them. The hooks overwrite what the model must not read.
TEST(PerceptronTest, UsesATensorOnlyBetweenWaitAndReady) {
  Fixture<float> reference;
  reference.Forward();
  ASSERT_TRUE(reference.model.Backward(Proceed).ok());

  Fixture<float> fixture;
  const std::span<const Tensor<float>> tensors = fixture.model.tensors();
  std::vector<std::vector<float>> values;
  for (const Tensor<float>& tensor : tensors) {
    values.emplace_back(tensor.value.begin(), tensor.value.end());
    std::fill(tensor.value.begin(), tensor.value.end(), NAN);
  }
  std::vector<size_t> waited;
  const auto wait = [&](size_t index) {
    waited.push_back(index);
    std::copy(values[index].begin(), values[index].end(), tensors[index].value.begin());
    return absl::OkStatus();
  };
  ASSERT_TRUE(fixture.model.Forward(fixture.images, fixture.labels, wait).ok());
  EXPECT_THAT(waited, ElementsAre(0, 1, 2, 3));

  std::vector<size_t> handed_over;
  std::vector<std::vector<float>> gradients(tensors.size());
  const auto ready = [&](size_t index) {
    handed_over.push_back(index);
    gradients[index].assign(tensors[index].gradient.begin(), tensors[index].gradient.end());
    std::fill(tensors[index].value.begin(), tensors[index].value.end(), NAN);
    return absl::OkStatus();
  };
  ASSERT_TRUE(fixture.model.Backward(ready).ok());
  EXPECT_THAT(handed_over, ElementsAre(3, 2, 1, 0));
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(gradients[i], reference.model.tensors()[i].gradient))
        << tensors[i].name;
    EXPECT_TRUE(std::ranges::equal(gradients[i], tensors[i].gradient)) << tensors[i].name;
  }
}

TEST(PerceptronTest, AnErrorOfAHookEndsTheStep) {
  Fixture<float> fixture;
  const auto fail = [](size_t index) {
    return index == 1 ? absl::DeadlineExceededError("late") : absl::OkStatus();
  };
  EXPECT_EQ(fixture.model.Forward(fixture.images, fixture.labels, fail).status().message(), "late");
  fixture.Forward();
  EXPECT_EQ(fixture.model.Backward(fail).message(), "late");
}

TEST(PerceptronTest, DescribesItsTensors) {
  Fixture<float> fixture;
  const std::span<const Tensor<float>> tensors = fixture.model.tensors();
  ASSERT_EQ(tensors.size(), 4);
  EXPECT_EQ(tensors[0].name, "hidden/weight");
  EXPECT_THAT(tensors[0].shape, ElementsAre(7, 6));
  EXPECT_NEAR(tensors[0].initial_bound, std::sqrt(6.0 / 7), 1e-12);
  EXPECT_EQ(tensors[3].name, "output/bias");
  EXPECT_THAT(tensors[3].shape, ElementsAre(4));
  EXPECT_EQ(tensors[3].initial_bound, 0);
  for (const Tensor<float>& tensor : tensors) {
    size_t elements = 1;
    for (const int64_t dimension : tensor.shape) elements *= dimension;
    EXPECT_EQ(tensor.value.size(), elements) << tensor.name;
    EXPECT_EQ(tensor.gradient.size(), elements) << tensor.name;
  }
}

}  // namespace
}  // namespace covey::fashion_mnist
