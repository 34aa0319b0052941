// SPDX-License-Identifier: Apache-2.0
#include "common/security/credential_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace covey {
namespace {

using testing::HasSubstr;

class CredentialFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "/folder-XXXXXX";
    root_ = mkdtemp(path.data());
    folder_ = root_ + "/node";
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  static void Plant(const std::string& path, const std::string& text, mode_t mode = 0600) {
    std::ofstream(path) << text;
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
  }
  absl::Status Replace(const std::string& key, const std::string& certificate) {
    const CredentialFile files[] = {{kNodeKeyFile, key, Readers::kOwner},
                                    {kNodeCertificateFile, certificate, Readers::kAll}};
    const absl::string_view replaced[] = {kNodeKeyFile, kNodeCertificateFile};
    return ReplaceFolder(folder_, files, replaced);
  }
  std::string Content(const std::string& name) {
    const auto content = ReadCredential(folder_ + "/" + name, Readers::kOwner);
    return content.ok() ? std::string(content->view()) : std::string(content.status().message());
  }
  static mode_t ModeOf(const std::string& path) {
    struct stat found;
    EXPECT_EQ(stat(path.c_str(), &found), 0) << path;
    return found.st_mode & 07777;
  }
  std::set<std::string> Names(const std::string& folder) {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      names.insert(entry.path().filename());
    }
    return names;
  }

  std::string root_;
  std::string folder_;
};

TEST_F(CredentialFolderTest, RefusesAKeyThatOthersMayUse) {
  const std::string path = root_ + "/node.key";
  for (const mode_t mode : {0640, 0604, 0620, 0601, 0660}) {
    Plant(path, "k", mode);
    const auto read = ReadCredential(path, Readers::kOwner);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kFailedPrecondition) << mode;
    EXPECT_THAT(read.status().message(), HasSubstr(absl::StrCat("run: chmod 600 ", path)));
    EXPECT_TRUE(ReadCredential(path, Readers::kAll).ok());
  }
  for (const mode_t mode : {0600, 0400}) {
    Plant(path, "k", mode);
    EXPECT_EQ(ReadCredential(path, Readers::kOwner)->view(), "k");
    chmod(path.c_str(), 0600);
  }
}

TEST_F(CredentialFolderTest, TakesAKeyThatRootGivesToTheGroupOfItsUser) {
  constexpr uid_t kNobody = 65534;
  // Not in the test's own folder, which that user may not reach.
  char folder[] = "/tmp/covey-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  ASSERT_EQ(chmod(folder, 0755), 0);
  const std::string path = absl::StrCat(folder, "/node.key");
  Plant(path, "k");
  const bool may_give = geteuid() == 0 && chown(path.c_str(), 0, kNobody) == 0;
  for (const auto& [mode, is_taken] :
       {std::pair(0640, true), std::pair(0440, true), std::pair(0660, false),
        std::pair(0644, false), std::pair(0650, false)}) {
    if (!may_give) break;
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    ASSERT_EQ(setegid(kNobody), 0);
    ASSERT_EQ(seteuid(kNobody), 0);
    const auto read = ReadCredential(path, Readers::kOwner);
    ASSERT_EQ(seteuid(0), 0);
    ASSERT_EQ(setegid(0), 0);
    EXPECT_EQ(read.ok(), is_taken) << mode << ": " << read.status();
  }
  std::filesystem::remove_all(folder);
  if (!may_give) GTEST_SKIP() << "needs root, whose file it is";
}

TEST_F(CredentialFolderTest, RefusesWhatIsNoCredential) {
  const std::string path = root_ + "/file";
  EXPECT_EQ(ReadCredential(path, Readers::kAll).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(ReadCredential(root_, Readers::kAll).status().message(), HasSubstr("is not a file"));
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(ReadCredential(path, Readers::kAll).status().message(), HasSubstr("is not a file"));
  unlink(path.c_str());
  Plant(path, "");
  ASSERT_EQ(truncate(path.c_str(), kCredentialBytesMax), 0);
  EXPECT_EQ(ReadCredential(path, Readers::kAll)->view().size(), kCredentialBytesMax);
  ASSERT_EQ(truncate(path.c_str(), int64_t{1} << 40), 0);
  EXPECT_THAT(ReadCredential(path, Readers::kAll).status().message(),
              HasSubstr("has 1099511627776 bytes, more than the 1048576"));
}

TEST_F(CredentialFolderTest, MakesAFolderForItsOwner) {
  const mode_t before = umask(0);
  EXPECT_TRUE(Replace("key", "certificate").ok());
  umask(before);
  EXPECT_EQ(Content("node.key"), "key");
  EXPECT_EQ(ModeOf(folder_), 0700u);
  EXPECT_EQ(ModeOf(folder_ + "/node.key"), 0600u);
  EXPECT_EQ(ModeOf(folder_ + "/node.crt"), 0644u);
  EXPECT_EQ(Names(root_), std::set<std::string>{"node"});
}

TEST_F(CredentialFolderTest, ReplacesAFolderAsAWhole) {
  ASSERT_TRUE(Replace("key 1", "certificate 1").ok());
  // Readers that are in the old folder are not given files of the new one.
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  folder_ += "/";
  ASSERT_TRUE(Replace("key 2", "certificate 2").ok());
  EXPECT_FALSE(std::filesystem::exists("node.key"));
  std::filesystem::current_path(here);
  EXPECT_EQ(Content("node.key"), "key 2");
  EXPECT_EQ(Names(root_), std::set<std::string>{"node"}) << "the old one is gone";
  EXPECT_EQ(Names(folder_), (std::set<std::string>{"node.crt", "node.key"}));
}

TEST_F(CredentialFolderTest, ReplacesNothingThatIsNotItsOwn) {
  ASSERT_TRUE(Replace("key", "certificate").ok());
  Plant(folder_ + "/thesis.txt", "x");
  EXPECT_THAT(Replace("key 2", "certificate 2").message(), HasSubstr("holds thesis.txt"));
  EXPECT_EQ(Content("node.key"), "key");
  EXPECT_EQ(Content("thesis.txt"), "x");
  const std::string link = root_ + "/link";
  ASSERT_EQ(symlink(folder_.c_str(), link.c_str()), 0);
  folder_ = link;
  EXPECT_THAT(Replace("key 2", "certificate 2").message(), HasSubstr("is not a folder"));
  EXPECT_EQ(Names(root_), (std::set<std::string>{"link", "node"}));
  folder_ = root_ + "/none" + "/node";
  EXPECT_THAT(Replace("key", "certificate").message(), HasSubstr("making a folder beside"));
}

TEST_F(CredentialFolderTest, ReplacesAFile) {
  ASSERT_TRUE(Replace("key", "certificate").ok());
  Plant(folder_ + "/node.crt.new", "left by a crash");
  ASSERT_TRUE(ReplaceFile(folder_, {kNodeCertificateFile, "certificate 2", Readers::kAll}).ok());
  EXPECT_EQ(Names(folder_), (std::set<std::string>{"node.crt", "node.key"}));
  EXPECT_EQ(ReadCredential(folder_ + "/node.crt", Readers::kAll)->view(), "certificate 2");
}

TEST_F(CredentialFolderTest, FindsAFolderByItsPlace) {
  ASSERT_TRUE(Replace("key", "certificate").ok());
  EXPECT_TRUE(IsDirectlyIn(folder_, folder_ + "/.."));
  EXPECT_TRUE(IsDirectlyIn(root_ + "/none/", root_ + "/"));
  EXPECT_FALSE(IsDirectlyIn(folder_ + "/none", root_));
  EXPECT_TRUE(HasFile(folder_, "node.key"));
  EXPECT_FALSE(HasFile(folder_, "ca.key"));
}

TEST_F(CredentialFolderTest, IsLockedForOneProcess) {
  EXPECT_EQ(FolderLock::Take(folder_).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(Replace("key", "certificate").ok());
  {
    const auto lock = FolderLock::Take(folder_);
    ASSERT_TRUE(lock.ok());
    EXPECT_EQ(FolderLock::Take(folder_).status().code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_TRUE(FolderLock::Take(folder_).ok());
}

}  // namespace
}  // namespace covey
