// SPDX-License-Identifier: Apache-2.0
#include "client/cli/replay/value_files.h"

#include "absl/strings/str_cat.h"
#include "client/cli/console/text_file.h"
#include "common/recording/testing/recording_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

Buffer Text(const std::string& text) {
  return Buffer::CopyOf({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

ShardHistory HistoryOf(const std::string& name, uint32_t shard) {
  ShardHistory history;
  history.table = SmallTable(shard, 2);
  history.table.mutable_spec()->set_name(name);
  return history;
}

TEST(ValueFiles, WritesEachTableFromShards) {
  const auto folder = TemporaryFolder::Make().value();
  const std::string values = absl::StrCat(folder->path(), "/", "values");
  ValueFiles files(values);
  ASSERT_TRUE(files.Add(HistoryOf("layer/w", 0), Text("0123456789abcdef")).ok());
  ASSERT_TRUE(files.Add(HistoryOf("layer/w", 1), Text("ghijklmnopqrstuv")).ok());
  ASSERT_TRUE(files.Add(HistoryOf("bias", 0), Text("ABCDEFGHIJKLMNOP")).ok());
  ASSERT_TRUE(files.Add(HistoryOf("bias", 1), Text("QRSTUVWXYZabcdef")).ok());
  ASSERT_TRUE(files.Finish().ok());
  const std::string file = ReadTextFile(values + "/layer%2Fw.npy").value();
  EXPECT_THAT(file, HasSubstr("'shape': (8,)"));
  EXPECT_THAT(file, EndsWith("\n0123456789abcdefghijklmnopqrstuv"));
  EXPECT_TRUE(ReadTextFile(values + "/bias.npy").ok());
}

TEST(ValueFiles, RefusesATableWithoutAllShards) {
  const auto folder = TemporaryFolder::Make().value();
  ValueFiles first(folder->path());
  EXPECT_THAT(std::string(first.Add(HistoryOf("w", 1), Text("0123456789abcdef")).message()),
              HasSubstr("no shard with element 0"));
  ValueFiles last(folder->path());
  ASSERT_TRUE(last.Add(HistoryOf("w", 0), Text("0123456789abcdef")).ok());
  EXPECT_THAT(std::string(last.Finish().message()), HasSubstr("no shard with element 4"));
  EXPECT_FALSE(ReadTextFile(folder->path() + "/w.npy").ok());
}

}  // namespace
}  // namespace covey::cli
