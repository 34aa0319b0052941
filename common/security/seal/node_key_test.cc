// SPDX-License-Identifier: Apache-2.0
#include "common/security/seal/node_key.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/escaping.h"

namespace covey {
namespace {

Secret SecretOf(absl::string_view hex) {
  const std::string bytes = absl::HexStringToBytes(hex);
  Secret secret(bytes.size());
  std::copy(bytes.begin(), bytes.end(), secret.bytes().begin());
  return secret;
}

NodeKey::Public PublicOf(absl::string_view hex) {
  const std::string bytes = absl::HexStringToBytes(hex);
  NodeKey::Public key;
  std::copy(bytes.begin(), bytes.end(), key.begin());
  return key;
}

// RFC 7748, section 6.1.
TEST(NodeKeyTest, AgreesAsTheStandardDoes) {
  const auto alice = NodeKey::FromPrivate(
      SecretOf("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"));
  const auto bob = NodeKey::FromPrivate(
      SecretOf("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"));
  ASSERT_TRUE(alice.ok() && bob.ok());
  EXPECT_EQ(alice->public_half(),
            PublicOf("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"));
  EXPECT_EQ(bob->public_half(),
            PublicOf("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"));
  const auto secret = alice->Agree(bob->public_half());
  ASSERT_TRUE(secret.ok()) << secret.status();
  EXPECT_EQ(absl::BytesToHexString(secret->view()),
            "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
}

// RFC 7748, section 5.2.
TEST(NodeKeyTest, ComputesTheFunctionOfTheStandard) {
  const auto key = NodeKey::FromPrivate(
      SecretOf("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4"));
  ASSERT_TRUE(key.ok());
  const auto secret =
      key->Agree(PublicOf("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c"));
  ASSERT_TRUE(secret.ok()) << secret.status();
  EXPECT_EQ(absl::BytesToHexString(secret->view()),
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552");
}

TEST(NodeKeyTest, TwoProcessesAgreeAndAThirdDoesNot) {
  const auto alice = NodeKey::Make();
  const auto bob = NodeKey::Make();
  const auto carol = NodeKey::Make();
  ASSERT_TRUE(alice.ok() && bob.ok() && carol.ok());
  EXPECT_NE(alice->public_half(), bob->public_half());
  const auto from_alice = alice->Agree(bob->public_half());
  const auto from_bob = bob->Agree(alice->public_half());
  const auto from_carol = carol->Agree(alice->public_half());
  ASSERT_TRUE(from_alice.ok() && from_bob.ok() && from_carol.ok());
  EXPECT_EQ(from_alice->view(), from_bob->view());
  EXPECT_NE(from_alice->view(), from_carol->view());
}

// Points of small order: the secret would be 0 for everybody.
TEST(NodeKeyTest, RefusesKeysThatGiveNoSecret) {
  const auto key = NodeKey::Make();
  ASSERT_TRUE(key.ok());
  for (const char* bad : {"0000000000000000000000000000000000000000000000000000000000000000",
                          "0100000000000000000000000000000000000000000000000000000000000000",
                          "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
                          "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
                          "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"}) {
    EXPECT_EQ(key->Agree(PublicOf(bad)).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace covey
