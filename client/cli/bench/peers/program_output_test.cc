// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/peers/program_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"

namespace covey::cli {
namespace {

using ::testing::HasSubstr;

TEST(OutputTest, IsTheStandardOutputToItsEnd) {
  EXPECT_EQ(*OutputOf({"sh", "-c", "echo a; echo error >&2; echo b"}), "a\nb\n");
  // More than one pipe holds.
  EXPECT_EQ(OutputOf({"sh", "-c", "head -c 300000 /dev/zero"})->size(), 300000u);
}

TEST(OutputTest, AFailureNamesItsLastError) {
  const absl::Status status = OutputOf({"sh", "-c", "echo one >&2; echo two >&2; exit 3"}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("exited with code 3: two"));
  EXPECT_FALSE(OutputOf({"no-such-program-anywhere"}).ok());
}

}  // namespace
}  // namespace covey::cli
