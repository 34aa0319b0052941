// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/random.h"
#include "common/gpu/memory.h"
#include "gtest/gtest.h"

namespace covey {

// Skips itself where there is no GPU.
class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!gpu::IsPresent()) {
      GTEST_SKIP() << "this machine has no GPU with a driver for this program; run the test where "
                      "nvidia-smi lists one";
    }
  }
};

// Lengths around those of a warp and of a block of threads, and far beyond.
inline std::vector<size_t> Lengths(Random& random) {
  std::vector<size_t> lengths = {0, 1, 2, 31, 32, 33, 255, 256, 257, 1 << 20};
  for (int i = 0; i < 20; ++i) lengths.push_back(random.Below(100'000));
  return lengths;
}

using Fill = std::function<float(Random& random)>;

inline float OrdinaryNumber(Random& random) { return static_cast<float>(random.Uniform()) * 4 - 1; }

inline float AnyBits(Random& random) {
  return std::bit_cast<float>(static_cast<uint32_t>(random.Next() >> 32));
}

inline std::vector<float> RandomFloats(Random& random, const Fill& fill, size_t count) {
  std::vector<float> result(count);
  for (float& x : result) x = fill(random);
  return result;
}

inline bool SameBits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

inline void ExpectSameBits(std::span<const float> actual, std::span<const float> expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_TRUE(SameBits(actual[i], expected[i]))
        << "element " << i << ": " << actual[i] << " instead of " << expected[i];
  }
}

inline gpu::Floats OnGpu(const std::vector<float>& values) {
  absl::StatusOr<gpu::Floats> floats = gpu::Floats::CopyOf(values);
  EXPECT_TRUE(floats.ok()) << floats.status();
  return *std::move(floats);
}

inline std::vector<float> FromGpu(const gpu::Floats& floats) {
  absl::StatusOr<std::vector<float>> values = floats.CopyBack();
  EXPECT_TRUE(values.ok()) << values.status();
  return *std::move(values);
}

}  // namespace covey
