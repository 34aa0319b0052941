// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/bucket_buffers.h"

#include <vector>

#include "common/base/buffer.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

class BucketBuffersTest : public ::testing::Test {
 protected:
  std::vector<TensorRequest> Requests() const {
    return {{.tensor = 0, .gradient = gradient_, .samples = 2}};
  }
  static std::vector<float> Floats(const Buffer& buffer) {
    const auto elements = buffer.As<float>();
    return {elements.begin(), elements.end()};
  }

  const std::vector<float> gradient_ = {1, 2, 3};
  Buffer kept_;  // as a push that is not durable keeps it
  int releases_ = 0;
  bool is_copied_ = false;
  BucketBuffers buffers_{{.pieces = {{.tensor = 0, .elements = {0, 3}}}, .element_count = 3},
                         {},
                         [this](const Buffer& memory) {
                           ++releases_;
                           EXPECT_EQ(memory.data(), kept_.data());
                           if (is_copied_) kept_ = Buffer::CopyOf(kept_.bytes());
                         }};
};

TEST_F(BucketBuffersTest, ReusesMemoryThatNobodyKeeps) {
  const float* first = buffers_.BeginStep(Requests()).gradient.data();
  EXPECT_EQ(buffers_.BeginStep({}).gradient.data(), first);
  EXPECT_EQ(releases_, 0);
}

TEST_F(BucketBuffersTest, AsksForMemoryThatAPushKeeps) {
  kept_ = buffers_.BeginStep(Requests()).gradient_memory;
  const uint8_t* first = kept_.data();
  is_copied_ = true;
  const BucketBuffers::StepInput next = buffers_.BeginStep({});
  EXPECT_EQ(releases_, 1);
  EXPECT_EQ(next.gradient_memory.data(), first);
  EXPECT_EQ(Floats(next.gradient_memory), std::vector<float>(3, 0));
  EXPECT_EQ(Floats(kept_), (std::vector<float>{2, 4, 6}));
}

TEST_F(BucketBuffersTest, LeavesMemoryToAFrameThatIsBeingSent) {
  kept_ = buffers_.BeginStep(Requests()).gradient_memory;
  const BucketBuffers::StepInput next =
      buffers_.RepeatStep(Requests(), BucketBuffers::Without::kZero);
  EXPECT_EQ(releases_, 1);
  EXPECT_TRUE(next.repeats);
  EXPECT_NE(next.gradient_memory.data(), kept_.data());
  EXPECT_EQ(Floats(next.gradient_memory), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(Floats(kept_), (std::vector<float>{2, 4, 6}));
}

}  // namespace
}  // namespace covey::worker
