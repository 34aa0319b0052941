// SPDX-License-Identifier: Apache-2.0
#include "common/security/node_credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/security/certificate_content.h"
#include "common/security/credential_folder.h"
#include "common/security/signing_root.h"

namespace covey {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
constexpr absl::Duration kDay = absl::Hours(24);
constexpr char kUri[] = "URI:spiffe://covey/job/mnist/role/worker/rank/3";

class NodeCredentialsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "/node-XXXXXX";
    folder_ = mkdtemp(path.data());
    Write(*root_.Issue(identity_, kNow, 7 * kDay));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Plant(const std::string& name, absl::string_view text, mode_t mode = 0600) {
    std::ofstream(folder_ + "/" + name) << text;
    ASSERT_EQ(chmod((folder_ + "/" + name).c_str(), mode), 0);
  }
  void Write(const SigningRoot::Issued& issued) {
    Plant("node.key", issued.key.Text()->view());
    Plant("node.crt", issued.certificate.Text(), 0644);
    Plant("ca.crt", root_.certificate().Text(), 0644);
  }
  // A certificate by the root that no authority of Covey would make.
  void WriteOdd(const std::vector<CertificateContent::Extension>& extensions) {
    PrivateKey key = *PrivateKey::Make();
    Certificate certificate = *Sign({.name = "odd",
                                     .not_before = kNow - kDay,
                                     .not_after = kNow + kDay,
                                     .extensions = extensions},
                                    key, {.key = root_.key(), .certificate = &root_.certificate()});
    Write({.key = std::move(key), .certificate = std::move(certificate)});
  }
  std::vector<std::string> Problems(absl::Time now = kNow) {
    return InspectNodeFolder(folder_, now).problems;
  }

  const Identity identity_ = {
      .trust_domain = "covey", .job = "mnist", .role = IdentityRole::kWorker, .rank = 3};
  const SigningRoot root_ = *SigningRoot::Make("covey", kNow, 365 * kDay);
  std::string folder_;
};

TEST_F(NodeCredentialsTest, AreLoaded) {
  const auto loaded = LoadNodeCredentials(folder_, kNow);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->identity, identity_);
  EXPECT_EQ(loaded->roots, root_.certificate().Text());
  EXPECT_EQ(loaded->not_before, kNow - absl::Minutes(5));
  EXPECT_EQ(loaded->not_after, kNow + 7 * kDay);
  EXPECT_TRUE(Certificate::ParseAll(loaded->certificate)
                  ->front()
                  .Fits(*PrivateKey::Parse(loaded->key.view())));
}

TEST_F(NodeCredentialsTest, ExpireWithTheFirstOfCertificateAndRoot) {
  EXPECT_EQ(InspectNodeFolder(folder_, kNow).Expiry(), kNow + 7 * kDay);
  Plant("ca.crt", SigningRoot::Make("covey", kNow, 5 * kDay)->certificate().Text(), 0644);
  EXPECT_EQ(InspectNodeFolder(folder_, kNow).Expiry(), kNow + 5 * kDay);
  Plant("ca.crt", root_.certificate().Text(), 0644);
  std::filesystem::remove(folder_ + "/node.crt");
  EXPECT_EQ(InspectNodeFolder(folder_, kNow).Expiry(), root_.certificate().NotAfter());
  std::filesystem::remove(folder_ + "/ca.crt");
  EXPECT_EQ(InspectNodeFolder(folder_, kNow).Expiry(), std::nullopt);
}

TEST_F(NodeCredentialsTest, NameWhatIsMissing) {
  std::filesystem::remove(folder_ + "/node.key");
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr(folder_ + "/node.key is missing")));
  std::filesystem::remove(folder_ + "/node.crt");
  EXPECT_EQ(Problems().size(), 2u);
  const absl::Status status = LoadNodeCredentials(folder_, kNow).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("and 1 more; see covey certificates show " + folder_));
  std::filesystem::remove(folder_ + "/ca.crt");
  EXPECT_EQ(Problems().size(), 3u);
}

TEST_F(NodeCredentialsTest, NameTheFolderThatIsMeant) {
  const std::string node = folder_;
  folder_ = absl::StrCat(node, "/none");
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("there is no folder " + folder_)));
  folder_ = absl::StrCat(node, "/roles");
  const std::string worker = absl::StrCat(folder_, "/worker");
  std::filesystem::create_directories(worker);
  std::filesystem::copy(node + "/node.crt", worker);
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("give one of them: " + worker)));
  folder_ = absl::StrCat(node, "/ca");
  std::filesystem::create_directory(folder_);
  Plant("ca.key", "");
  Plant("ca.crt", "");
  EXPECT_THAT(Problems(),
              ElementsAre(HasSubstr("covey certificates issue " + folder_ + " --role")));
}

TEST_F(NodeCredentialsTest, RefuseAKeyThatOthersMayRead) {
  chmod((folder_ + "/node.key").c_str(), 0640);
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("chmod 600 " + folder_ + "/node.key")));
}

TEST_F(NodeCredentialsTest, RefuseTheKeyOfAnotherCertificate) {
  Plant("node.key", PrivateKey::Make()->Text()->view());
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("it is not the key of the certificate")));
}

TEST_F(NodeCredentialsTest, AreValidForATime) {
  EXPECT_THAT(Problems(kNow + 7 * kDay - absl::Seconds(1)), ElementsAre());
  EXPECT_THAT(Problems(kNow + 7 * kDay),
              ElementsAre(HasSubstr("it expired at 2027-01-22T08:00:00Z")));
  EXPECT_THAT(Problems(kNow - absl::Minutes(5)), ElementsAre());
  EXPECT_THAT(Problems(kNow - absl::Minutes(5) - absl::Seconds(1)),
              ElementsAre(HasSubstr("it is not valid before")));
}

TEST_F(NodeCredentialsTest, NeedARootThatVouchesForThem) {
  Plant("ca.crt", SigningRoot::Make("covey", kNow, kDay)->certificate().Text());
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("no root in ca.crt vouches for it")));
  Plant("ca.crt", absl::StrCat(SigningRoot::Make("covey", kNow, kDay)->certificate().Text(),
                               root_.certificate().Text()));
  EXPECT_THAT(Problems(), ElementsAre());
  // A certificate vouches for nobody, not even for itself.
  Plant("ca.crt", InspectNodeFolder(folder_, kNow).chain[0].Text());
  EXPECT_THAT(Problems(), testing::Contains(HasSubstr("is not that of an authority")));
}

TEST_F(NodeCredentialsTest, AreSignedByNobodyElse) {
  PrivateKey key = *PrivateKey::Make();
  Certificate certificate = *Sign({.name = "self",
                                   .not_before = kNow - kDay,
                                   .not_after = kNow + kDay,
                                   .extensions = {{NID_key_usage, "digitalSignature"},
                                                  {NID_ext_key_usage, "clientAuth"},
                                                  {NID_subject_alt_name, kUri}}},
                                  key, {.key = key});
  Write({.key = std::move(key), .certificate = std::move(certificate)});
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("no root in ca.crt vouches for it")));
}

TEST_F(NodeCredentialsTest, HaveOneIdentity) {
  const CertificateContent::Extension usage = {NID_key_usage, "digitalSignature"};
  const CertificateContent::Extension purpose = {NID_ext_key_usage, "clientAuth"};
  WriteOdd({usage, purpose, {NID_subject_alt_name, kUri}});
  EXPECT_THAT(Problems(), ElementsAre());
  WriteOdd({usage, purpose, {NID_subject_alt_name, absl::StrCat("DNS:host,", kUri)}});
  EXPECT_THAT(Problems(), ElementsAre()) << "other names mean nothing";
  WriteOdd({usage, purpose, {NID_subject_alt_name, absl::StrCat(kUri, ",", kUri)}});
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("it has 2 URIs")));
  WriteOdd({usage, purpose, {NID_subject_alt_name, "DNS:host"}});
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("it has no URI")));
  WriteOdd({usage, purpose});
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("it has no URI")));
  WriteOdd({usage, purpose, {NID_subject_alt_name, "URI:spiffe://covey/ns/a/sa/b"}});
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("is not of the form spiffe://TRUST-DOMAIN")));
}

TEST_F(NodeCredentialsTest, AreForTheirUse) {
  const CertificateContent::Extension name = {NID_subject_alt_name, kUri};
  const CertificateContent::Extension usage = {NID_key_usage, "digitalSignature"};
  const CertificateContent::Extension purpose = {NID_ext_key_usage, "clientAuth"};
  WriteOdd({name, usage});
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("it has no extended key usage")));
  WriteOdd({name, usage, {NID_ext_key_usage, "serverAuth"}});
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("lacks clientAuth")));
  WriteOdd({name, purpose, {NID_key_usage, "keyEncipherment"}});
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("lacks digitalSignature")));
  WriteOdd({name,
            purpose,
            {NID_key_usage, "digitalSignature,keyCertSign"},
            {NID_basic_constraints, "critical,CA:TRUE"}});
  EXPECT_THAT(Problems(), testing::Contains(HasSubstr("that of an authority")));
  WriteOdd({{NID_subject_alt_name, "URI:spiffe://covey/job/mnist/role/scheduler"}, usage, purpose});
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("lacks serverAuth, which a scheduler needs")));
}

TEST_F(NodeCredentialsTest, AreThoseOfOneFolderWhileItIsReplaced) {
  constexpr absl::string_view names[] = {kNodeKeyFile, kNodeCertificateFile, kRootsFile};
  const auto issued = {root_.Issue(identity_, kNow, kDay), root_.Issue(identity_, kNow, 2 * kDay)};
  const std::string roots = root_.certificate().Text();
  std::atomic<bool> ends = false;
  std::thread replacer([&] {
    while (!ends) {
      for (const auto& one : issued) {
        const Secret key = *one->key.Text();
        const std::string certificate = one->certificate.Text();
        const CredentialFile files[] = {{kNodeKeyFile, key.view(), Readers::kOwner},
                                        {kNodeCertificateFile, certificate, Readers::kAll},
                                        {kRootsFile, roots, Readers::kAll}};
        EXPECT_TRUE(ReplaceFolder(folder_, files, names).ok());
      }
    }
  });
  const uint64_t first = FolderNumber(folder_);
  int replaced = 0;
  for (int i = 0; i < 500 || replaced == 0; ++i) {
    EXPECT_THAT(Problems(), ElementsAre());
    replaced += FolderNumber(folder_) == first ? 0 : 1;
  }
  ends = true;
  replacer.join();
}

TEST_F(NodeCredentialsTest, HaveLimitsAndForms) {
  Plant("node.crt", "hello");
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("node.crt: there is no certificate in PEM form")));
  Plant("node.crt", "");
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("node.crt: there is no certificate in PEM form")));
  Plant("ca.crt", std::string(kCredentialBytesMax + 1, 'x'));
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("more than the 1048576"), HasSubstr("node.crt")))
      << absl::StrJoin(Problems(), "\n");
}

}  // namespace
}  // namespace covey
