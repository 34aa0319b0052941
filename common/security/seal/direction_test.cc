// SPDX-License-Identifier: Apache-2.0
#include "common/security/seal/direction.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

namespace covey {
namespace {

Secret AgreedSecret(char byte) {
  Secret secret(NodeKey::kBytes);
  for (char& c : secret.bytes()) c = byte;
  return secret;
}

Direction Example() {
  return {.job = 5,
          .sender = {NodeId(7), 1},
          .receiver = {NodeId(8), 2},
          .sender_key = {1, 2, 3},
          .receiver_key = {4, 5, 6}};
}

PartCipher MustMake(PartCipher::Use use, const Direction& direction, uint64_t generation) {
  auto cipher = MakeCipher(use, *PairSecret(AgreedSecret('s')), direction, generation);
  EXPECT_TRUE(cipher.ok()) << cipher.status();
  return *std::move(cipher);
}

// Whether `opener` opens what Example's first key has sealed.
bool OpensExample(PartCipher opener) {
  PartCipher::Tag tag;
  std::vector<uint8_t> bytes(40, 1);
  EXPECT_TRUE(
      MustMake(PartCipher::Use::kSeal, Example(), 0).Seal({}, {}, bytes, bytes.data(), tag));
  return opener.Open({}, {}, bytes, tag, bytes.data());
}

TEST(DirectionTest, BothEndsHaveTheSameKey) {
  EXPECT_TRUE(OpensExample(MustMake(PartCipher::Use::kOpen, Example(), 0)));
}

TEST(DirectionTest, EachFieldGivesAnotherKey) {
  const std::vector<std::function<void(Direction&)>> changes = {
      [](Direction& d) { ++d.job; },
      [](Direction& d) { d.sender.node = NodeId(9); },
      [](Direction& d) { ++d.sender.loop; },
      [](Direction& d) { d.receiver.node = NodeId(9); },
      [](Direction& d) { ++d.receiver.loop; },
      [](Direction& d) { ++d.sender_key[31]; },
      [](Direction& d) { ++d.receiver_key[31]; },
      // The reverse: a message cannot be returned to its sender.
      [](Direction& d) {
        std::swap(d.sender, d.receiver);
        std::swap(d.sender_key, d.receiver_key);
      },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    Direction other = Example();
    changes[i](other);
    EXPECT_FALSE(OpensExample(MustMake(PartCipher::Use::kOpen, other, 0))) << "change " << i;
  }
  EXPECT_FALSE(OpensExample(MustMake(PartCipher::Use::kOpen, Example(), 1)));
}

TEST(DirectionTest, AnotherSecretGivesAnotherKey) {
  auto cipher = MakeCipher(PartCipher::Use::kOpen, *PairSecret(AgreedSecret('t')), Example(), 0);
  ASSERT_TRUE(cipher.ok());
  EXPECT_FALSE(OpensExample(*std::move(cipher)));
}

TEST(DirectionTest, AKeySealsABoundedNumberOfMessages) {
  EXPECT_EQ(GenerationOf(0), 0u);
  EXPECT_EQ(GenerationOf(65535), 0u);
  EXPECT_EQ(GenerationOf(65536), 1u);
  EXPECT_EQ(GenerationOf(~uint64_t{0}), (uint64_t{1} << 48) - 1);
}

}  // namespace
}  // namespace covey
