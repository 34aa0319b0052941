// SPDX-License-Identifier: Apache-2.0
#include "server/socket_folder.h"

#include <sys/stat.h>

#include <fstream>
#include <optional>
#include <utility>

#include "gtest/gtest.h"

namespace covey::server {
namespace {

bool Exists(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0;
}

TEST(SocketFolder, IsPrivateAndGoesWithWhatIsInIt) {
  absl::StatusOr<SocketFolder> created = SocketFolder::Create();
  ASSERT_TRUE(created.ok()) << created.status();
  std::optional<SocketFolder> folder(*std::move(created));
  const std::string path = folder->path();
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  std::ofstream(path + "/1") << "left behind";
  ASSERT_TRUE(Exists(path + "/1"));
  folder.reset();
  EXPECT_FALSE(Exists(path));
}

}  // namespace
}  // namespace covey::server
