// SPDX-License-Identifier: Apache-2.0
#include "scheduler/port_file.h"

#include <fstream>
#include <iterator>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace covey::scheduler {
namespace {

TEST(PortFileTest, HoldsThePort) {
  const std::string path = ::testing::TempDir() + "port_file_test.port";
  ASSERT_TRUE(WritePortFile(path, 40001).ok());
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "40001\n");
}

TEST(PortFileTest, SaysWhyItCannotBeWritten) {
  const absl::Status status = WritePortFile("/no/such/folder/port", 1);
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_NE(status.message().find("No such file or directory"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace covey::scheduler
