// SPDX-License-Identifier: Apache-2.0
#include "common/security/seal/part_cipher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/random.h"

namespace covey {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes FromHex(absl::string_view hex) {
  const std::string bytes = absl::HexStringToBytes(hex);
  return Bytes(bytes.begin(), bytes.end());
}
std::string ToHex(std::span<const uint8_t> bytes) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

// `hex`: the key, then the salt.
PartCipher MustMake(PartCipher::Use use, absl::string_view hex) {
  const Bytes bytes = FromHex(hex);
  Secret secret(bytes.size());
  std::copy(bytes.begin(), bytes.end(), secret.bytes().begin());
  auto cipher = PartCipher::Make(use, secret);
  EXPECT_TRUE(cipher.ok()) << cipher.status();
  return *std::move(cipher);
}

struct Vector {
  std::string key;
  std::string nonce;
  std::string additional;
  std::string plain;
  std::string sealed;
  std::string tag;
};

// Test cases 1 to 4 of McGrew and Viega's specification of GCM, which SP 800-38D refers to.
std::vector<Vector> Standard() {
  const std::string zeros(32, '0');
  const std::string key = "feffe9928665731c6d6a8f9467308308";
  const std::string nonce = "cafebabefacedbaddecaf888";
  const std::string plain =
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
      "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
  const std::string sealed =
      "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
      "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091";
  return {
      {.key = zeros, .nonce = zeros.substr(8), .tag = "58e2fccefa7e3061367f1d57a4e7455a"},
      {.key = zeros,
       .nonce = zeros.substr(8),
       .plain = zeros,
       .sealed = "0388dace60b6a392f328c2b971b2fe78",
       .tag = "ab6e47d42cec13bdf53a67b21257bddf"},
      {.key = key,
       .nonce = nonce,
       .plain = absl::StrCat(plain, "1aafd255"),
       .sealed = absl::StrCat(sealed, "473f5985"),
       .tag = "4d5c2af327cd64a62cf35abd2ba6fab4"},
      {.key = key,
       .nonce = nonce,
       .additional = "feedfacedeadbeeffeedfacedeadbeefabaddad2",
       .plain = plain,
       .sealed = sealed,
       .tag = "5bc94fbc3221a5db94fae95ae7121a47"},
  };
}

// A part without a number has the salt as its nonce.
TEST(PartCipherTest, SealsAndOpensAsTheStandardDoes) {
  for (const Vector& vector : Standard()) {
    const std::string key = absl::StrCat(vector.key, vector.nonce);
    const Bytes plain = FromHex(vector.plain);
    Bytes bytes(plain.size());
    PartCipher::Tag tag;
    ASSERT_TRUE(MustMake(PartCipher::Use::kSeal, key)
                    .Seal({}, FromHex(vector.additional), plain, bytes.data(), tag));
    EXPECT_EQ(ToHex(bytes), vector.sealed);
    EXPECT_EQ(ToHex(tag), vector.tag);
    // In place.
    ASSERT_TRUE(MustMake(PartCipher::Use::kOpen, key)
                    .Open({}, FromHex(vector.additional), bytes, tag, bytes.data()));
    EXPECT_EQ(bytes, plain);
  }
}

class SealedPart : public testing::Test {
 protected:
  static constexpr const char* kKey = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b";
  static constexpr PartCipher::Number kNumber = {.message = 0x0123456789abcdef, .part = 3};

  SealedPart() : sealed_(plain_.size()) {
    EXPECT_TRUE(MustMake(PartCipher::Use::kSeal, kKey)
                    .Seal(kNumber, additional_, plain_, sealed_.data(), tag_));
  }
  bool Opens(const PartCipher::Number& number) {
    Bytes opened(sealed_.size());
    return opener_.Open(number, additional_, sealed_, tag_, opened.data()) && opened == plain_;
  }

  const Bytes plain_ = Bytes(100, 7);
  Bytes additional_ = Bytes(20, 9);
  Bytes sealed_;
  PartCipher::Tag tag_;
  PartCipher opener_ = MustMake(PartCipher::Use::kOpen, kKey);
};

TEST_F(SealedPart, OpensAgainAfterARefusal) {
  EXPECT_TRUE(Opens(kNumber));
  sealed_[5] ^= 1;
  EXPECT_FALSE(Opens(kNumber));
  sealed_[5] ^= 1;
  EXPECT_TRUE(Opens(kNumber));
}

TEST_F(SealedPart, IsRefusedWhenAnyBitDiffers) {
  for (std::span<uint8_t> field :
       {std::span<uint8_t>(additional_), std::span<uint8_t>(sealed_), std::span<uint8_t>(tag_)}) {
    for (uint8_t& byte : field) {
      for (int bit = 0; bit < 8; ++bit) {
        byte ^= static_cast<uint8_t>(1 << bit);
        EXPECT_FALSE(Opens(kNumber));
        byte ^= static_cast<uint8_t>(1 << bit);
      }
    }
  }
  EXPECT_TRUE(Opens(kNumber));
}

TEST_F(SealedPart, IsRefusedUnderAnotherNumber) {
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_FALSE(Opens({.message = kNumber.message ^ (uint64_t{1} << bit), .part = kNumber.part}));
  }
  for (int bit = 0; bit < 32; ++bit) {
    EXPECT_FALSE(Opens({.message = kNumber.message, .part = kNumber.part ^ (uint32_t{1} << bit)}));
  }
}

TEST_F(SealedPart, HidesThePlainBytes) {
  EXPECT_NE(sealed_, plain_);
  // The same bytes under the next number have nothing in common.
  Bytes other(plain_.size());
  PartCipher::Tag tag;
  ASSERT_TRUE(MustMake(PartCipher::Use::kSeal, kKey)
                  .Seal({.message = kNumber.message + 1, .part = kNumber.part}, additional_, plain_,
                        other.data(), tag));
  EXPECT_NE(other, sealed_);
  EXPECT_NE(tag, tag_);
}

TEST(PartCipherTest, TakesPartsOfAllSizes) {
  PartCipher sealer = MustMake(PartCipher::Use::kSeal, std::string(56, '5'));
  PartCipher opener = MustMake(PartCipher::Use::kOpen, std::string(56, '5'));
  Random random(1);
  for (uint64_t i = 0; i < 300; ++i) {
    Bytes plain(random.Below(i * i + 1));
    for (uint8_t& byte : plain) byte = static_cast<uint8_t>(random.Next());
    Bytes bytes = plain;
    PartCipher::Tag tag;
    ASSERT_TRUE(sealer.Seal({.message = i}, {}, bytes, bytes.data(), tag));
    ASSERT_TRUE(opener.Open({.message = i}, {}, bytes, tag, bytes.data()));
    EXPECT_EQ(bytes, plain);
  }
}

}  // namespace
}  // namespace covey
