// SPDX-License-Identifier: Apache-2.0
#include "common/table/key_list.h"

#include <limits>
#include <vector>

#include "common/cluster/limits.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using Keys = std::vector<uint64_t>;

Keys Back(const EncodedKeys& encoded) {
  const Buffer decoded = DecodedKeys(encoded.list, encoded.frame).value();
  const auto keys = decoded.As<uint64_t>();
  return {keys.begin(), keys.end()};
}

TEST(KeyListTest, ListsComeBackAsTheyWere) {
  const Keys lists[] = {{}, {0}, {~uint64_t{0}}, {3, 4, 1000}, {5, uint64_t{1} << 63}};
  for (const Keys& keys : lists) {
    const EncodedKeys encoded = Encoded(keys);
    EXPECT_EQ(encoded.list.count(), keys.size());
    EXPECT_EQ(IsKeyFrame(encoded.list, encoded.frame), !keys.empty());
    EXPECT_EQ(Back(encoded), keys);
  }
  EXPECT_EQ(Encoded(Keys{3, 4, 1000}).list.encoding(), proto::KeyList::GAPS);
  EXPECT_EQ(Encoded(Keys{uint64_t{1} << 63}).list.encoding(), proto::KeyList::PLAIN);
}

TEST(KeyListTest, CountsAndSizesThatCannotBeAreNoKeyFrames) {
  EncodedKeys encoded = Encoded(Keys{3, 4, 1000});
  const auto fits = [&encoded](uint32_t count) {
    encoded.list.set_count(count);
    return IsKeyFrame(encoded.list, encoded.frame);
  };
  EXPECT_TRUE(fits(3));
  EXPECT_TRUE(fits(1)) << "up to ten bytes for a key";
  EXPECT_FALSE(fits(0));
  EXPECT_FALSE(fits(5)) << "a byte at least";
  EXPECT_FALSE(fits(std::numeric_limits<uint32_t>::max()));
  encoded.list.set_count(kKeysPerRequestMax + 1);
  EXPECT_FALSE(IsKeyFrame(encoded.list, Buffer::Allocate(2 * kKeysPerRequestMax)));
  encoded.list.set_count(3);
  encoded.list.set_encoding(static_cast<proto::KeyList::Encoding>(7));
  EXPECT_FALSE(IsKeyFrame(encoded.list, encoded.frame));
}

TEST(KeyListTest, ADamagedListIsRefused) {
  EncodedKeys encoded = Encoded(Keys{3, 4, 1000});
  encoded.list.set_count(2);
  EXPECT_EQ(DecodedKeys(encoded.list, encoded.frame).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace covey
