// SPDX-License-Identifier: Apache-2.0
#include "common/security/certificate_authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/security/node_credentials.h"

namespace covey {
namespace {

using testing::HasSubstr;
using Stage = CertificateAuthority::Stage;
using InUse = CertificateAuthority::InUse;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
constexpr absl::Duration kDay = absl::Hours(24);
constexpr absl::Duration kYear = absl::Hours(365 * 24);

class CertificateAuthorityTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "/authority-XXXXXX";
    root_ = mkdtemp(path.data());
    folder_ = root_ + "/ca";
    ASSERT_TRUE(CertificateAuthority::Create(folder_, "covey", kNow, kYear).ok());
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::unique_ptr<CertificateAuthority> Open() {
    auto authority = CertificateAuthority::Open(folder_);
    EXPECT_TRUE(authority.ok()) << authority.status();
    return *std::move(authority);
  }
  static Identity Worker(uint32_t rank) {
    return {.trust_domain = "covey", .job = "mnist", .role = IdentityRole::kWorker, .rank = rank};
  }
  std::string NodeFolder(uint32_t rank) { return absl::StrCat(root_, "/worker-", rank); }
  absl::Status Issue(uint32_t rank, absl::Time now = kNow) {
    return Open()->Issue(Worker(rank), now, 7 * kDay, NodeFolder(rank)).status();
  }
  std::set<std::string> Names(const std::string& folder) {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      names.insert(entry.path().filename());
    }
    return names;
  }
  // Whether each of the folders trusts each other one.
  static testing::AssertionResult TrustEachOther(const std::vector<uint32_t>& ranks,
                                                 CertificateAuthorityTest& test, absl::Time now) {
    for (const uint32_t shown : ranks) {
      for (const uint32_t trusting : ranks) {
        const NodeFolderReport a = InspectNodeFolder(test.NodeFolder(shown), now);
        const NodeFolderReport b = InspectNodeFolder(test.NodeFolder(trusting), now);
        if (!a.credentials.has_value()) return testing::AssertionFailure() << a.problems[0];
        const absl::Status trust = CheckChain(a.chain, b.roots, now);
        if (!trust.ok()) {
          return testing::AssertionFailure() << trusting << " refuses " << shown << ": " << trust;
        }
      }
    }
    return testing::AssertionSuccess();
  }

  std::string root_;
  std::string folder_;
};

TEST_F(CertificateAuthorityTest, IsMadeOnce) {
  EXPECT_EQ(Names(folder_), (std::set<std::string>{"ca.crt", "ca.key", "issued", "revoked"}));
  struct stat found;
  ASSERT_EQ(stat((folder_ + "/ca.key").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  const std::string serial = Open()->roots()[0].Serial();
  const absl::Status again = CertificateAuthority::Create(folder_, "covey", kNow, kYear);
  EXPECT_EQ(again.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(again.message(), HasSubstr("rotate " + folder_ + " --step add"));
  EXPECT_EQ(Open()->roots()[0].Serial(), serial);
  EXPECT_EQ(Open()->trust_domain(), "covey");
}

TEST_F(CertificateAuthorityTest, IsMadeInAnEmptyFolderOnly) {
  const std::string empty = root_ + "/empty";
  std::filesystem::create_directory(empty);
  EXPECT_TRUE(CertificateAuthority::Create(empty, "covey", kNow, kYear).ok());
  const std::string full = root_ + "/full";
  std::filesystem::create_directory(full);
  std::ofstream(full + "/thesis.txt") << "x";
  EXPECT_THAT(CertificateAuthority::Create(full, "covey", kNow, kYear).message(),
              HasSubstr("holds thesis.txt"));
  EXPECT_THAT(CertificateAuthority::Open(full).status().message(),
              HasSubstr("covey certificates init " + full));
}

TEST_F(CertificateAuthorityTest, IssuesAFolderThatANodeCanUse) {
  ASSERT_TRUE(Issue(3).ok());
  const auto node = LoadNodeCredentials(NodeFolder(3), kNow);
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->identity, Worker(3));
  EXPECT_EQ(node->not_after, kNow + 7 * kDay);
  const auto authority = Open();
  ASSERT_EQ(authority->issued().InUse().size(), 1u);
  EXPECT_EQ(authority->issued().InUse()[0].identity, Worker(3));
  EXPECT_EQ(authority->issued().InUse()[0].root, authority->roots()[0].Serial());
}

TEST_F(CertificateAuthorityTest, RenewsForTheSameIdentityOnly) {
  ASSERT_TRUE(Issue(3).ok());
  const std::string first = Open()->issued().InUse()[0].serial;
  ASSERT_TRUE(Open()->Renew(NodeFolder(3), kNow + kDay).ok());
  EXPECT_EQ(LoadNodeCredentials(NodeFolder(3), kNow + kDay)->not_after, kNow + 8 * kDay);
  ASSERT_EQ(Open()->issued().InUse().size(), 1u) << "the first is no longer in use";
  EXPECT_NE(Open()->issued().InUse()[0].serial, first);
  const absl::Status other = Open()->Issue(Worker(4), kNow, kDay, NodeFolder(3)).status();
  EXPECT_THAT(other.message(), HasSubstr("holds the certificate of worker 3 of job mnist"));
  EXPECT_EQ(LoadNodeCredentials(NodeFolder(3), kNow + kDay)->identity, Worker(3));
  EXPECT_THAT(Open()->Renew(NodeFolder(9), kNow).status().message(),
              HasSubstr("holds no certificate"));
}

TEST_F(CertificateAuthorityTest, ItsFolderIsNotThatOfANode) {
  EXPECT_THAT(Open()->Issue(Worker(1), kNow, kDay, folder_ + "/worker").status().message(),
              HasSubstr("would lie in the folder of the authority"));
  EXPECT_FALSE(Open()->Issue(Worker(1), kNow, kDay, folder_).ok());
  EXPECT_TRUE(Open()->issued().InUse().empty());
  EXPECT_EQ(Names(folder_), (std::set<std::string>{"ca.crt", "ca.key", "issued", "revoked"}));
}

TEST_F(CertificateAuthorityTest, IsUsedByOneProcessAtATime) {
  const auto authority = Open();
  EXPECT_EQ(CertificateAuthority::Open(folder_).status().code(), absl::StatusCode::kUnavailable);
}

// Nodes get their new folders one after the other, and all trust each other all the time.
TEST_F(CertificateAuthorityTest, ReplacesItsRootWhileNodesTrustEachOther) {
  const std::vector<uint32_t> ranks = {0, 1, 2};
  for (const uint32_t rank : ranks) ASSERT_TRUE(Issue(rank).ok());
  const std::string old = Open()->roots()[0].Serial();
  absl::Time now = kNow;
  const auto renew_all = [&] {
    for (const uint32_t rank : ranks) {
      now += absl::Minutes(1);
      ASSERT_TRUE(Open()->Renew(NodeFolder(rank), now).ok());
      EXPECT_TRUE(TrustEachOther(ranks, *this, now)) << "after the renewal of " << rank;
    }
  };
  ASSERT_TRUE(Open()->AddRoot(now, kYear).ok());
  EXPECT_EQ(Open()->stage(), Stage::kRootIsAdded);
  EXPECT_EQ(Open()->roots()[0].Serial(), old) << "still signs";
  renew_all();
  ASSERT_TRUE(Open()->UseRoot(now).ok());
  EXPECT_EQ(Open()->stage(), Stage::kRootIsUsed);
  EXPECT_NE(Open()->roots()[0].Serial(), old);
  EXPECT_EQ(Open()->roots()[1].Serial(), old);
  EXPECT_EQ(Names(folder_), (std::set<std::string>{"ca.crt", "ca.key", "issued", "revoked"}));
  renew_all();
  ASSERT_TRUE(Open()->RemoveRoot(now, InUse::kRefuses).ok());
  EXPECT_EQ(Open()->stage(), Stage::kOneRoot);
  EXPECT_NE(Open()->roots()[0].Serial(), old);
  renew_all();
  EXPECT_EQ(LoadNodeCredentials(NodeFolder(0), now)->roots, Open()->roots()[0].Text())
      << "nobody trusts the old root";
}

TEST_F(CertificateAuthorityTest, StepsHaveAnOrderAndMayBeRepeated) {
  const std::string rotate = "rotate " + folder_ + " --step ";
  EXPECT_THAT(Open()->UseRoot(kNow).message(), HasSubstr(rotate + "add"));
  EXPECT_TRUE(Open()->RemoveRoot(kNow, InUse::kRefuses).ok()) << "there is none to remove";
  ASSERT_TRUE(Open()->AddRoot(kNow, kYear).ok());
  const std::string next = Open()->roots()[1].Serial();
  ASSERT_TRUE(Open()->AddRoot(kNow, kYear).ok());
  EXPECT_EQ(Open()->roots()[1].Serial(), next);
  EXPECT_THAT(Open()->RemoveRoot(kNow, InUse::kIsIgnored).message(), HasSubstr(rotate + "use"));
  ASSERT_TRUE(Open()->UseRoot(kNow).ok());
  ASSERT_TRUE(Open()->UseRoot(kNow).ok());
  EXPECT_EQ(Open()->roots()[0].Serial(), next);
  EXPECT_THAT(Open()->AddRoot(kNow, kYear).message(), HasSubstr(rotate + "remove"));
}

TEST_F(CertificateAuthorityTest, KeepsARootThatVouchesForCertificatesInUse) {
  ASSERT_TRUE(Issue(1).ok());
  ASSERT_TRUE(Issue(2).ok());
  ASSERT_TRUE(Open()->AddRoot(kNow, kYear).ok());
  ASSERT_TRUE(Open()->UseRoot(kNow).ok());
  ASSERT_TRUE(Open()->Renew(NodeFolder(1), kNow).ok());
  const absl::Status refused = Open()->RemoveRoot(kNow, InUse::kRefuses);
  EXPECT_THAT(refused.message(), HasSubstr("vouches for 1 certificate in use, that of worker 2 of "
                                           "job mnist"));
  EXPECT_EQ(Open()->stage(), Stage::kRootIsUsed);
  EXPECT_TRUE(Open()->RemoveRoot(kNow + 7 * kDay, InUse::kRefuses).ok())
      << "by then it has expired";
}

TEST_F(CertificateAuthorityTest, CanCutOffCertificatesInUse) {
  ASSERT_TRUE(Issue(1).ok());
  ASSERT_TRUE(Open()->AddRoot(kNow, kYear).ok());
  ASSERT_TRUE(Open()->UseRoot(kNow).ok());
  EXPECT_TRUE(Open()->RemoveRoot(kNow, InUse::kIsIgnored).ok());
  EXPECT_TRUE(Open()->issued().InUse().empty()) << "they are of no more use";
}

TEST_F(CertificateAuthorityTest, SaysWhenItsRootEndsTooEarly) {
  EXPECT_TRUE(Issue(1, kNow + kYear - 7 * kDay).ok());
  EXPECT_THAT(Issue(2, kNow + kYear - 6 * kDay).message(),
              HasSubstr("rotate " + folder_ + " --step add"));
}

TEST_F(CertificateAuthorityTest, NamesWhatIsDamaged) {
  const auto damage = [this](const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    const std::string copy = root_ + "/copy";
    std::filesystem::rename(path, copy);
    if (!text.empty()) {
      std::ofstream(path) << text;
      chmod(path.c_str(), 0600);
    }
    const auto opened = CertificateAuthority::Open(folder_);
    std::filesystem::rename(copy, path);
    return std::string(opened.status().message());
  };
  EXPECT_THAT(damage("ca.key", "x"), HasSubstr("ca.key: there is no private key"));
  EXPECT_THAT(damage("ca.key", std::string(PrivateKey::Make()->Text()->view())),
              HasSubstr("ca.key: the private key is not that of the certificate"));
  EXPECT_THAT(damage("ca.crt", "x"), HasSubstr("ca.crt: there is no certificate"));
  EXPECT_THAT(damage("issued", "x"), HasSubstr("issued: line 1: "));
  EXPECT_THAT(damage("issued", ""), HasSubstr("issued"));
  chmod((folder_ + "/ca.key").c_str(), 0644);
  EXPECT_THAT(CertificateAuthority::Open(folder_).status().message(), HasSubstr("chmod 600"));
}

}  // namespace
}  // namespace covey
