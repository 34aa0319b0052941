// SPDX-License-Identifier: Apache-2.0
#include "common/table/key_list.h"

#include <limits>
#include <set>
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

KeyListName NameOfKeys(const Keys& keys) {
  EncodedKeys encoded = Encoded(keys);
  SetName(encoded);
  return NameOf(encoded.list);
}

TEST(KeyListTest, ANameDependsOnAllKeys) {
  EXPECT_TRUE(NameOfKeys({}).is_none());
  // Equal in their first 4,096 keys, and of one length.
  Keys keys;
  for (uint64_t key = 0; key < 5000; ++key) keys.push_back(7 * key);
  const KeyListName name = NameOfKeys(keys);
  EXPECT_EQ(NameOfKeys(keys), name);
  for (const size_t changed : {size_t{4096}, size_t{4999}, size_t{0}, size_t{2500}}) {
    Keys other = keys;
    ++other[changed];
    EXPECT_NE(NameOfKeys(other).low, name.low) << changed;
    EXPECT_NE(NameOfKeys(other).high, name.high) << changed;
  }
  keys.pop_back();
  EXPECT_NE(NameOfKeys(keys), name);
}

TEST(KeyListTest, NamesOfManyShortListsDiffer) {
  std::set<uint64_t> halves;
  size_t lists = 0;
  for (uint64_t first = 0; first < 300; ++first) {
    for (uint64_t second = first; second < 300; second += 1 + first % 3) {
      for (const uint64_t far : {uint64_t{0}, uint64_t{1} << 63}) {
        const KeyListName name =
            NameOfKeys(first == second ? Keys{first | far} : Keys{first | far, second | far});
        halves.insert({name.low, name.high});
        ++lists;
      }
    }
  }
  EXPECT_EQ(halves.size(), 2 * lists);
}

// A name is the same in every process and on every machine, and in every version that knows it.
TEST(KeyListTest, NamesDoNotChange) {
  const KeyListName name = NameOfKeys({3, 4, 1000, uint64_t{1} << 40});
  EXPECT_EQ(name.low, 249541065963080076);
  EXPECT_EQ(name.high, 159772234045835049);
}

TEST(KeyListTest, AListThatGoesByItsNameHasNoFrame) {
  EncodedKeys encoded = Encoded(Keys{3, 4, 1000});
  EXPECT_FALSE(IsNamed(encoded.list));
  encoded.list.set_encoding(proto::KeyList::NAMED);
  EXPECT_TRUE(IsNamed(encoded.list));
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
