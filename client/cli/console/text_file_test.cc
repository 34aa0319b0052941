// SPDX-License-Identifier: Apache-2.0
#include "client/cli/console/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace covey::cli {
namespace {

using ::testing::HasSubstr;

std::string Path(absl::string_view name) { return absl::StrCat(::testing::TempDir(), "/", name); }

TEST(TextFileTest, ReadsWhatWasWrittenLast) {
  const std::string text(10000, 'x');
  ASSERT_EQ(WriteTextFile(Path("text"), "first"), absl::OkStatus());
  ASSERT_EQ(WriteTextFile(Path("text"), text), absl::OkStatus());
  EXPECT_EQ(ReadTextFile(Path("text")).value(), text);
}

TEST(TextFileTest, ErrorsNameThePath) {
  EXPECT_THAT(ReadTextFile("/no/such").status().message(), HasSubstr("reading /no/such"));
  EXPECT_THAT(WriteTextFile("/no/such", "x").message(), HasSubstr("writing /no/such"));
  ASSERT_EQ(WriteTextFile(Path("plain"), ""), absl::OkStatus());
  EXPECT_THAT(MakeFolder(Path("plain")).message(), HasSubstr("not a folder"));
  EXPECT_THAT(MakeFolder(Path("plain/a")).message(), HasSubstr("plain/a"));
}

TEST(TextFileTest, KnowsBeforehandWhatCannotBeWritten) {
  EXPECT_EQ(CheckWritable(Path("new")), absl::OkStatus());
  EXPECT_THAT(CheckWritable("/no/such").message(), HasSubstr("writing /no/such"));
  EXPECT_THAT(CheckWritable(Path(".")).message(), HasSubstr("not a file"));
}

TEST(TextFileTest, MakesAFolderWithItsParents) {
  EXPECT_EQ(MakeFolder(Path("a/b/c")), absl::OkStatus());
  EXPECT_EQ(MakeFolder(Path("a/b/c")), absl::OkStatus());
  EXPECT_EQ(WriteTextFile(Path("a/b/c/d"), "x"), absl::OkStatus());
}

TEST(TextFileTest, ATemporaryFolderDisappearsWithWhatIsInIt) {
  std::string path;
  {
    auto folder = TemporaryFolder::Make();
    ASSERT_TRUE(folder.ok()) << folder.status();
    path = (*folder)->path();
    ASSERT_EQ(MakeFolder(path + "/inner"), absl::OkStatus());
    ASSERT_EQ(WriteTextFile(path + "/inner" + "/file", "x"), absl::OkStatus());
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST(TextFileTest, ALogGrowsByLines) {
  {
    auto log = LogFile::Open(Path("log"));
    ASSERT_TRUE(log.ok()) << log.status();
    (*log)->Append("one");
    (*log)->Append("two");
  }
  EXPECT_EQ(ReadTextFile(Path("log")).value(), "one\ntwo\n");
  LogFile::Open(Path("log"), LogFile::Existing::kKept).value()->Append("three");
  EXPECT_EQ(ReadTextFile(Path("log")).value(), "one\ntwo\nthree\n");
  LogFile::Open(Path("log")).value()->Append("four");
  EXPECT_EQ(ReadTextFile(Path("log")).value(), "four\n");
}

}  // namespace
}  // namespace covey::cli
