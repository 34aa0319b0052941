// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/key_codec.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using Keys = std::vector<uint64_t>;
using Bytes = std::vector<uint8_t>;

constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max();

Keys Draw(Random& random, size_t count, uint64_t bound) {
  Keys keys(count);
  for (uint64_t& key : keys) key = bound == 0 ? random.Next() : random.Below(bound);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

Bytes Plain(const Keys& keys) {
  Bytes bytes;
  for (const uint64_t key : keys) {
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<uint8_t>(key >> (8 * i)));
  }
  return bytes;
}

std::string RefusalOf(KeyEncoding encoding, const Bytes& bytes, size_t count) {
  Keys keys(count);
  const absl::Status status = DecodeKeys(encoding, bytes, keys);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(KeyCodecTest, ListsComeBackAsTheyWere) {
  Random random(1);
  std::vector<Keys> lists = {
      {}, {0}, {kLast}, {0, kLast}, {kLast - 1, kLast}, {127, 128, 129, 256}};
  for (const uint64_t bound :
       {uint64_t{300}, uint64_t{1'000'000}, uint64_t{1} << 40, uint64_t{0}}) {
    for (const size_t count : {1, 2, 100, 20'000}) lists.push_back(Draw(random, count, bound));
  }
  for (const Keys& keys : lists) {
    Bytes bytes = {9};
    const KeyEncoding encoding = EncodeKeys(keys, bytes);
    EXPECT_EQ(bytes[0], 9);
    Keys decoded(keys.size());
    ASSERT_TRUE(DecodeKeys(encoding, std::span(bytes).subspan(1), decoded).ok());
    EXPECT_EQ(decoded, keys);
  }
}

TEST(KeyCodecTest, SmallIdsTakeFewBytes) {
  Random random(2);
  Bytes bytes;
  // 10,000 of a million, a quarter of them in this list.
  EXPECT_EQ(EncodeKeys(Draw(random, 2'500, 1'000'000), bytes), KeyEncoding::kGaps);
  EXPECT_LT(bytes.size(), 2.0 * 2'500);
}

TEST(KeyCodecTest, AListTakesNeverMoreThanPlainKeys) {
  bool was_plain = false;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const Keys keys = Draw(random, 1 + random.Below(3), 0);
    Bytes bytes;
    const KeyEncoding encoding = EncodeKeys(keys, bytes);
    EXPECT_LE(bytes.size(), keys.size() * 8);
    if (encoding == KeyEncoding::kPlain) {
      EXPECT_EQ(bytes, Plain(keys));
    }
    was_plain |= encoding == KeyEncoding::kPlain;
  }
  EXPECT_TRUE(was_plain);
}

TEST(KeyCodecTest, PlainKeysMustAscendAndFillTheBytes) {
  EXPECT_NE(
      RefusalOf(KeyEncoding::kPlain, Plain({3, 3}), 2).find("key 1 of the list is not greater"),
      std::string::npos);
  EXPECT_NE(RefusalOf(KeyEncoding::kPlain, Plain({3, 2}), 2).find("key 1"), std::string::npos);
  EXPECT_EQ(RefusalOf(KeyEncoding::kPlain, Plain({3}), 2),
            "a list of 2 plain keys has 8 bytes, not 16");
  EXPECT_NE(RefusalOf(KeyEncoding::kPlain, {1, 2, 3}, 0).find("3 bytes, not 0"), std::string::npos);
}

TEST(KeyCodecTest, GapsMustBeShortNumbersThatFillTheBytes) {
  const auto refusal = [](const Bytes& bytes, size_t count) {
    return RefusalOf(KeyEncoding::kGaps, bytes, count);
  };
  EXPECT_NE(refusal({}, 1).find("key 0 of the list is no number"), std::string::npos);
  EXPECT_NE(refusal({5, 0x80}, 2).find("key 1"), std::string::npos);
  EXPECT_NE(refusal({5, 0x80, 0}, 2).find("key 1"), std::string::npos);  // longer than need be
  EXPECT_EQ(refusal({5, 6, 7}, 2), "a list of 2 keys has 1 bytes too many");
  const Bytes last = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
  Keys keys(1);
  ASSERT_TRUE(DecodeKeys(KeyEncoding::kGaps, last, keys).ok());
  EXPECT_EQ(keys[0], kLast);
  Bytes beyond = last;
  beyond[9] = 0x02;
  EXPECT_NE(refusal(beyond, 1).find("key 0"), std::string::npos);
  beyond[9] = 0x81;
  beyond.push_back(0);
  EXPECT_NE(refusal(beyond, 1).find("key 0"), std::string::npos);
  Bytes one_more = last;
  one_more.push_back(0);
  EXPECT_NE(refusal(one_more, 2).find("key 1 of the list is greater than 2^64 - 1"),
            std::string::npos);
  Bytes wraps = {10};
  wraps.insert(wraps.end(), last.begin(), last.end());
  EXPECT_NE(refusal(wraps, 2).find("greater than 2^64 - 1"), std::string::npos);
}

TEST(KeyCodecTest, AnUnknownEncodingIsRefused) {
  EXPECT_NE(RefusalOf(static_cast<KeyEncoding>(7), {}, 0).find("encoding 7"), std::string::npos);
}

// What decodes is a list that ascends, and it encodes to the same bytes; all else is refused.
TEST(KeyCodecTest, DamagedListsDecodeToListsOrAreRefused) {
  Random random(3);
  int decoded = 0;
  for (int round = 0; round < 200'000; ++round) {
    const Keys keys = Draw(random, random.Below(6), uint64_t{1} << random.Below(64));
    Bytes bytes;
    const KeyEncoding encoding = EncodeKeys(keys, bytes);
    size_t count = keys.size();
    switch (random.Below(4)) {
      case 0:
        bytes.resize(random.Below(bytes.size() + 1));
        break;
      case 1:
        bytes.push_back(static_cast<uint8_t>(random.Next()));
        break;
      case 2:
        count += 1;
        break;
      default:
        if (!bytes.empty()) bytes[random.Below(bytes.size())] = static_cast<uint8_t>(random.Next());
    }
    Keys found(count);
    if (!DecodeKeys(encoding, bytes, found).ok()) continue;
    ++decoded;
    for (size_t i = 1; i < count; ++i) ASSERT_GT(found[i], found[i - 1]);
    if (encoding == KeyEncoding::kPlain) {
      ASSERT_EQ(Plain(found), bytes);
    } else if (Bytes again; EncodeKeys(found, again) == KeyEncoding::kGaps) {
      ASSERT_EQ(again, bytes);
    }
  }
  EXPECT_GT(decoded, 1000);
}

}  // namespace
}  // namespace covey
