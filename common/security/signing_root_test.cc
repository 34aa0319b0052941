// SPDX-License-Identifier: Apache-2.0
#include "common/security/signing_root.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"

namespace covey {
namespace {

using testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
constexpr absl::Duration kWeek = absl::Hours(7 * 24);
constexpr absl::Duration kYear = absl::Hours(365 * 24);

SigningRoot Root(const std::string& trust_domain = "covey") {
  return *SigningRoot::Make(trust_domain, kNow, kYear);
}

Identity Of(IdentityRole role) { return {.trust_domain = "covey", .job = "mnist", .role = role}; }

Certificate Issued(const SigningRoot& root, IdentityRole role) {
  return root.Issue(Of(role), kNow, kWeek)->certificate;
}

absl::Status Check(const Certificate& certificate, const SigningRoot& root, absl::Time now) {
  return CheckChain({&certificate, 1}, {&root.certificate(), 1}, now);
}

TEST(SigningRootTest, IsAnAuthorityThatSignsNoOthers) {
  const SigningRoot root = Root();
  const Certificate& certificate = root.certificate();
  EXPECT_TRUE(certificate.IsAuthority());
  EXPECT_EQ(X509_get_pathlen(certificate.openssl()), 0);
  EXPECT_EQ(X509_get_key_usage(certificate.openssl()),
            static_cast<uint32_t>(KU_KEY_CERT_SIGN | KU_CRL_SIGN));
  EXPECT_EQ(certificate.NotBefore(), kNow - absl::Minutes(5));
  EXPECT_EQ(certificate.NotAfter(), kNow + kYear);
  EXPECT_EQ(*certificate.FindTrustDomain(), "covey");
  EXPECT_FALSE(certificate.FindIdentity().ok());
  EXPECT_THAT(certificate.CheckUsage(IdentityRole::kWorker).message(),
              HasSubstr("that of an authority"));
}

TEST(SigningRootTest, IssuesForEveryRole) {
  const SigningRoot root = Root();
  for (const IdentityRole role : kIdentityRoles) {
    const auto issued = root.Issue(Of(role), kNow, kWeek);
    const Certificate& certificate = issued->certificate;
    EXPECT_EQ(*certificate.FindIdentity(), Of(role));
    EXPECT_TRUE(certificate.Fits(issued->key));
    EXPECT_FALSE(certificate.Fits(root.key()));
    EXPECT_FALSE(certificate.IsAuthority());
    EXPECT_EQ(certificate.NotBefore(), kNow - absl::Minutes(5));
    EXPECT_EQ(certificate.NotAfter(), kNow + kWeek);
    EXPECT_EQ(X509_get_key_usage(certificate.openssl()),
              static_cast<uint32_t>(KU_DIGITAL_SIGNATURE));
    const bool accepts = role == IdentityRole::kScheduler;
    EXPECT_EQ(X509_get_extended_key_usage(certificate.openssl()),
              static_cast<uint32_t>(accepts ? XKU_SSL_CLIENT | XKU_SSL_SERVER : XKU_SSL_CLIENT));
    EXPECT_TRUE(certificate.CheckUsage(role).ok());
    EXPECT_EQ(certificate.CheckUsage(IdentityRole::kScheduler).ok(), accepts);
    EXPECT_TRUE(Check(certificate, root, kNow).ok());
  }
}

TEST(SigningRootTest, SerialsAreLongAndRandom) {
  const SigningRoot root = Root();
  std::set<std::string> serials = {root.certificate().Serial()};
  for (int i = 0; i < 50; ++i) serials.insert(Issued(root, IdentityRole::kWorker).Serial());
  EXPECT_EQ(serials.size(), 51u);
  for (const std::string& serial : serials) EXPECT_EQ(serial.size(), 32u);
}

TEST(SigningRootTest, VouchesOnlyForItsOwnAndOnlyInTime) {
  const SigningRoot root = Root();
  const Certificate certificate = Issued(root, IdentityRole::kWorker);
  EXPECT_TRUE(Check(certificate, root, kNow - absl::Minutes(5)).ok());
  EXPECT_TRUE(Check(certificate, root, kNow + kWeek - absl::Seconds(1)).ok());
  EXPECT_THAT(Check(certificate, root, kNow - absl::Minutes(6)).message(),
              HasSubstr("not yet valid"));
  EXPECT_THAT(Check(certificate, root, kNow + kWeek + absl::Seconds(1)).message(),
              HasSubstr("expired"));
  EXPECT_FALSE(Check(certificate, Root(), kNow).ok());
  // A root signs no authorities: what a node signs is worthless.
  const auto node = root.Issue(Of(IdentityRole::kWorker), kNow, kWeek);
  EXPECT_FALSE(
      SigningRoot::Load(*PrivateKey::Parse(node->key.Text()->view()), node->certificate).ok());
}

TEST(SigningRootTest, RefusesWhatItCannotVouchFor) {
  const SigningRoot root = Root();
  Identity other = Of(IdentityRole::kWorker);
  other.trust_domain = "elsewhere";
  EXPECT_THAT(root.Issue(other, kNow, kWeek).status().message(),
              HasSubstr("the trust domain is covey, not elsewhere"));
  EXPECT_FALSE(
      root.Issue({.trust_domain = "covey", .role = IdentityRole::kWorker}, kNow, kWeek).ok())
      << "without a job";
  EXPECT_FALSE(root.Issue(Of(IdentityRole::kWorker), kNow, absl::ZeroDuration()).ok());
  EXPECT_TRUE(root.Issue(Of(IdentityRole::kWorker), kNow + kYear - kWeek, kWeek).ok());
  const auto late =
      root.Issue(Of(IdentityRole::kWorker), kNow + kYear - kWeek + absl::Seconds(1), kWeek);
  EXPECT_EQ(late.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(late.status().message(), HasSubstr("but its root only until 2028-01-15T08:00:00Z"));
  EXPECT_FALSE(SigningRoot::Make("Not A Domain", kNow, kYear).ok());
}

TEST(SigningRootTest, IsLoadedFromItsTexts) {
  const SigningRoot root = Root(std::string(kTrustDomainBytesMax, 'd'));
  auto certificates = *Certificate::ParseAll(root.certificate().Text());
  ASSERT_EQ(certificates.size(), 1u);
  const auto loaded =
      SigningRoot::Load(*PrivateKey::Parse(root.key().Text()->view()), certificates[0]);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->trust_domain(), root.trust_domain());
  EXPECT_THAT(SigningRoot::Load(*PrivateKey::Make(), root.certificate()).status().message(),
              HasSubstr("the private key is not that of the certificate"));
}

TEST(PrivateKeyTest, AsksNobodyForAPassphrase) {
  const auto key = PrivateKey::Make();
  const BioPointer writer = MakeWriter();
  char passphrase[] = "secret";
  ASSERT_EQ(PEM_write_bio_PKCS8PrivateKey(writer.get(), key->openssl(), EVP_aes_128_cbc(),
                                          passphrase, 6, nullptr, nullptr),
            1);
  EXPECT_THAT(PrivateKey::Parse(TextIn(*writer)).status().message(), HasSubstr("is encrypted"));
  EXPECT_THAT(PrivateKey::Parse("x").status().message(), HasSubstr("no private key"));
}

TEST(SecretTest, IsMovedAndOverwritten) {
  Secret secret(4);
  secret.bytes()[0] = 'a';
  secret.bytes()[3] = 'd';
  const char* const at = secret.bytes().data();
  Secret moved = std::move(secret);
  EXPECT_EQ(moved.bytes().data(), at);
  EXPECT_TRUE(secret.view().empty());
  moved.Truncate(1);
  EXPECT_EQ(moved.view(), "a");
  EXPECT_EQ(at[3], 0) << "still its own memory";
}

TEST(CertificateTest, ReadsSeveralUpToALimit) {
  const std::string one = Root().certificate().Text();
  std::string many;
  for (size_t i = 0; i < kCertificatesPerFileMax; ++i) many += one;
  EXPECT_EQ(Certificate::ParseAll(many)->size(), kCertificatesPerFileMax);
  EXPECT_THAT(Certificate::ParseAll(many + one).status().message(), HasSubstr("more than 16"));
  EXPECT_THAT(Certificate::ParseAll("").status().message(), HasSubstr("no certificate"));
  const std::string cut = one.substr(0, one.size() / 2);
  EXPECT_THAT(Certificate::ParseAll(one + cut).status().message(),
              HasSubstr("certificate 2 is malformed"));
}

// Every function that reads a certificate from outside, on damaged ones.
TEST(CertificateTest, DamagedBytesCrashNothing) {
  const SigningRoot root = Root();
  const Certificate whole = Issued(root, IdentityRole::kScheduler);
  unsigned char* der = nullptr;
  const int bytes = i2d_X509(whole.openssl(), &der);
  const std::string original(reinterpret_cast<const char*>(der), bytes);
  OPENSSL_free(der);
  Random random(3);
  int read = 0;
  for (int round = 0; round < 1000; ++round) {
    std::string damaged = original;
    for (uint64_t flips = 1 + random.Below(4); flips > 0; --flips) {
      damaged[random.Below(damaged.size())] = static_cast<char>(random.Below(256));
    }
    const auto* at = reinterpret_cast<const unsigned char*>(damaged.data());
    CertificatePointer x509(d2i_X509(nullptr, &at, bytes));
    if (x509 == nullptr) continue;
    ++read;
    const Certificate certificate(std::move(x509));
    (void)certificate.FindIdentity();
    (void)certificate.FindTrustDomain();
    (void)certificate.CheckUsage(IdentityRole::kScheduler);
    (void)certificate.IsAuthority();
    (void)certificate.Fits(root.key());
    EXPECT_LE(certificate.Serial().size(), 2 * original.size());
    EXPECT_EQ(damaged == original, Check(certificate, root, kNow).ok());
    EXPECT_LE(FormatUtc(certificate.NotAfter()).size(), 64u);
  }
  EXPECT_GT(read, 200);
}

}  // namespace
}  // namespace covey
