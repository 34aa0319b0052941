// SPDX-License-Identifier: Apache-2.0
#include "client/cli/process/child_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace covey::cli {
namespace {

using ::testing::ElementsAre;
using Stream = ChildOutput::Stream;

TEST(ChildOutputTest, EveryLineOfAChildThatHasEnded) {
  auto child = ChildProcess::Start(
      {.name = "worker-0",
       .arguments = {"/bin/sh", "-c", "seq 10; printf 'a\\r\\nend'; printf wrong >&2"}});
  ASSERT_TRUE(child.ok()) << child.status();
  siginfo_t info;
  waitid(P_PID, (*child)->pid(), &info, WEXITED | WNOWAIT);

  const std::string path = absl::StrCat(::testing::TempDir(), "/child.log");
  auto log = LogFile::Open(path);
  ASSERT_TRUE(log.ok()) << log.status();
  std::vector<std::string> out, error;
  ChildOutput output(**child, *std::move(log), [&](Stream stream, absl::string_view line) {
    (stream == Stream::kOutput ? out : error).emplace_back(line);
  });
  output.Read(Stream::kOutput);
  EXPECT_EQ(out.back(), "a") << "the rest is no whole line yet";
  output.Finish();

  EXPECT_EQ(out.size(), 12u);
  EXPECT_EQ(out.back(), "end");
  EXPECT_THAT(error, ElementsAre("wrong"));
  EXPECT_THAT(output.last_lines(), ElementsAre("9", "10", "a", "end", "wrong"));
  EXPECT_EQ(ReadTextFile(path).value(), "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\na\nend\nwrong\n");
  EXPECT_EQ((*child)->descriptor(Stream::kOutput), -1);
}

}  // namespace
}  // namespace covey::cli
