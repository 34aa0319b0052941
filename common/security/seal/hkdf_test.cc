// SPDX-License-Identifier: Apache-2.0
#include "common/security/seal/hkdf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"

namespace covey {
namespace {

struct Vector {
  std::string secret;
  std::string salt;
  std::string info;
  std::string key;
  std::string made;
};

// The bytes `first`, `first` + 1, and so on, 80 of them.
std::string Counting(int first) {
  std::string bytes;
  for (int i = 0; i < 80; ++i) bytes.push_back(static_cast<char>(first + i));
  return bytes;
}

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// RFC 5869, appendices A.1 to A.3.
std::vector<Vector> Standard() {
  return {
      {.secret = std::string(22, '\x0b'),
       .salt = absl::HexStringToBytes("000102030405060708090a0b0c"),
       .info = absl::HexStringToBytes("f0f1f2f3f4f5f6f7f8f9"),
       .key = "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
       .made =
           "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"},
      {.secret = Counting(0),
       .salt = Counting(0x60),
       .info = Counting(0xb0),
       .key = "06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
       .made = "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c"
               "59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71"
               "cc30c58179ec3e87c14c01d5c1f3434f1d87"},
      {.secret = std::string(22, '\x0b'),
       .salt = "",
       .info = "",
       .key = "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
       .made =
           "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"},
  };
}

TEST(HkdfTest, DerivesAsTheStandardDoes) {
  for (const Vector& vector : Standard()) {
    Secret secret(vector.secret.size());
    std::copy(vector.secret.begin(), vector.secret.end(), secret.bytes().begin());
    const auto key = HkdfExtract(BytesOf(vector.salt), secret);
    ASSERT_TRUE(key.ok()) << key.status();
    EXPECT_EQ(absl::BytesToHexString(key->view()), vector.key);
    const auto made = HkdfExpand(*key, BytesOf(vector.info), vector.made.size() / 2);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(absl::BytesToHexString(made->view()), vector.made);
  }
}

}  // namespace
}  // namespace covey
