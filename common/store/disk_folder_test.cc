// SPDX-License-Identifier: Apache-2.0
#include "common/store/disk_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace covey {
namespace {

class DiskFolderTest : public testing::Test {
 protected:
  DiskFolderTest() {
    path_ = testing::TempDir() + "/store-XXXXXX";
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
    folder_ = *DiskFolder::Open(path_, DiskFolder::Missing::kIsError);
  }

  absl::Status Append(const std::string& path, uint64_t offset, const std::string& bytes) {
    const Folder::Bytes part = {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
    return folder_->Append(path, offset, {&part, 1});
  }
  mode_t ModeOf(const std::string& path) {
    struct stat status;
    EXPECT_EQ(0, stat((path_ + "/" + path).c_str(), &status));
    return status.st_mode & 0777;
  }

  std::string path_;
  std::unique_ptr<DiskFolder> folder_;
};

TEST_F(DiskFolderTest, KeepsModelsPrivate) {
  ASSERT_TRUE(Append("s/part", 0, "1").ok());
  EXPECT_EQ(mode_t{0700}, ModeOf("s"));
  EXPECT_EQ(mode_t{0600}, ModeOf("s/part"));
}

TEST_F(DiskFolderTest, FollowsNoLinks) {
  const std::string outside = path_ + "-outside";
  ASSERT_EQ(0, mkdir(outside.c_str(), 0700));
  std::ofstream(outside + "/secret") << "secret";
  ASSERT_EQ(0, symlink(outside.c_str(), (path_ + "/folder").c_str()));
  ASSERT_EQ(0, symlink((outside + "/secret").c_str(), (path_ + "/file").c_str()));
  ASSERT_EQ(0, symlink((outside + "/new").c_str(), (path_ + "/new").c_str()));
  for (const char* path : {"folder/secret", "file"}) {
    EXPECT_FALSE(folder_->Read(path, 0, 0).ok()) << path;
    EXPECT_FALSE(Append(path, 0, "1").ok()) << path;
    EXPECT_FALSE(folder_->Remove(path, "").ok()) << path;
  }
  EXPECT_FALSE(Append("new", 0, "1").ok());
  EXPECT_FALSE(Append("folder/new", 0, "1").ok());
  EXPECT_FALSE(folder_->Publish("folder/new", {}).ok());
  EXPECT_FALSE(folder_->List("folder").ok());
  EXPECT_NE(0, access((outside + "/new").c_str(), F_OK));
  EXPECT_EQ(0, access((outside + "/secret").c_str(), F_OK));
  // Other entries than files and folders are not shown.
  EXPECT_TRUE(folder_->List("")->empty());
}

TEST_F(DiskFolderTest, AFullDiskEndsTheFile) {
  // A limit of file sizes gives a short write first and an error then, as a full disk does.
  ASSERT_NE(SIG_ERR, signal(SIGXFSZ, SIG_IGN));
  const rlimit limit = {.rlim_cur = 1000, .rlim_max = RLIM_INFINITY};
  ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &limit));
  const absl::Status status = Append("s/part", 0, std::string(1500, 'x'));
  const rlimit none = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
  ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &none));

  EXPECT_EQ(absl::StatusCode::kResourceExhausted, status.code()) << status;
  EXPECT_NE(std::string::npos, status.ToString().find(path_ + "/" + "s/part")) << status;
  EXPECT_TRUE(folder_->List("s")->empty());
  EXPECT_EQ(status, Append("s/part", 0, "1"));
  EXPECT_EQ(status, folder_->Sync("s/part"));
  EXPECT_EQ(status, folder_->Publish("s/part", {}));
  EXPECT_EQ(status, folder_->Read("s/part", 0, 0).status());
  EXPECT_TRUE(folder_->Remove("s/part", "").ok());
  EXPECT_TRUE(Append("s/part", 0, "1").ok());
}

TEST_F(DiskFolderTest, LeavesForeignFilesAlone) {
  ASSERT_TRUE(Append("s/part", 0, "1").ok());
  std::ofstream(path_ + "/" + "s/.nfs0001") << "x";
  const absl::Status status = folder_->Remove("s", "MANIFEST");
  EXPECT_EQ(absl::StatusCode::kFailedPrecondition, status.code()) << status;
  EXPECT_EQ(0, access((path_ + "/" + "s/.nfs0001").c_str(), F_OK));
}

}  // namespace
}  // namespace covey
