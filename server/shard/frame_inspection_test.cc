// SPDX-License-Identifier: Apache-2.0
#include "server/shard/frame_inspection.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "common/base/crc32c.h"

namespace covey::server {
namespace {

uint32_t ChecksumOf(const std::vector<float>& elements) {
  return Crc32c({reinterpret_cast<const uint8_t*>(elements.data()), elements.size() * 4});
}

TEST(FrameInspectionTest, TheChecksumIsThatOfAllBytes) {
  for (const size_t count : {0, 1, 4095, 4096, 4097, 10'000}) {
    std::vector<float> elements(count);
    for (size_t i = 0; i < count; ++i) elements[i] = std::sin(static_cast<float>(i));
    const FrameInspection found = InspectFrame(elements);
    EXPECT_EQ(found.checksum, ChecksumOf(elements)) << count;
    EXPECT_TRUE(found.all_finite) << count;
  }
}

TEST(FrameInspectionTest, FindsWhatIsNotFiniteInEachBlock) {
  for (const size_t place : {0, 4095, 4096, 9'999}) {
    for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
      std::vector<float> elements(10'000, 1.0f);
      elements[place] = bad;
      const FrameInspection found = InspectFrame(elements);
      EXPECT_FALSE(found.all_finite) << place;
      EXPECT_EQ(found.checksum, ChecksumOf(elements)) << place;
    }
  }
}

}  // namespace
}  // namespace covey::server
