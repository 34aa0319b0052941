// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/examples/factorization/criteo_reader.h"
#include "worker/examples/factorization/libsvm_reader.h"

namespace covey::factorization {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Write(const std::string& content) {
  const std::string path = ::testing::TempDir() + "/samples";
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

using Reader = absl::StatusOr<Samples> (*)(const std::string&);

// A good first line, and then the bad one, must be refused there.
void ExpectMistake(Reader read, const std::string& good, const std::string& bad, size_t column,
                   const std::string& problem) {
  const std::string path = Write(absl::StrCat(good, "\n", bad, "\n", good, "\n"));
  const absl::Status status = read(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("reading ", path, ": line 2, column ", column, ": ")));
  EXPECT_THAT(std::string(status.message()), HasSubstr(problem));
}

TEST(LibsvmReaderTest, ReadsLabelsAndFeatures) {
  const absl::StatusOr<Samples> samples = ReadLibsvm(
      Write("+1 3:0.5 18446744073709551615:-2e1\t7:1 # a comment 9:9\n\n-1\n0 1:1\n2.5 3:0.25"));
  ASSERT_TRUE(samples.ok()) << samples.status();
  ASSERT_EQ(samples->size(), 4u);
  EXPECT_EQ(samples->label(0), 1);
  EXPECT_EQ(samples->label(1), 0);
  EXPECT_EQ(samples->label(2), 0);
  EXPECT_EQ(samples->label(3), 1);
  EXPECT_THAT(samples->features(0).keys, ElementsAre(3, ~uint64_t{0}, 7));
  EXPECT_THAT(samples->features(0).values, ElementsAre(0.5f, -20.0f, 1.0f));
  EXPECT_THAT(samples->features(1).keys, ElementsAre());
  EXPECT_THAT(samples->features(3).keys, ElementsAre(3));
  EXPECT_THAT(samples->features(3).values, ElementsAre(0.25f));
}

TEST(LibsvmReaderTest, RefusesMalformedLines) {
  const std::string good = "1 3:0.5 4:1";
  ExpectMistake(ReadLibsvm, good, "yes 3:1", 1, "'yes' is no label");
  ExpectMistake(ReadLibsvm, good, "nan 3:1", 1, "'nan' is no label");
  ExpectMistake(ReadLibsvm, good, "3:1", 1, "'3:1' is no label");
  ExpectMistake(ReadLibsvm, good, "1 3:1 4", 7, "'4' is no feature");
  ExpectMistake(ReadLibsvm, good, "1 3:1  qid:4", 8, "'qid' is no index");
  ExpectMistake(ReadLibsvm, good, "1 -3:1", 3, "'-3' is no index");
  ExpectMistake(ReadLibsvm, good, "1 :1", 3, "'' is no index");
  ExpectMistake(ReadLibsvm, good, "1 18446744073709551616:1", 3, "is no index");
  ExpectMistake(ReadLibsvm, good, "1 3:", 5, "'' is no value");
  ExpectMistake(ReadLibsvm, good, "1 3:1:2", 5, "'1:2' is no value");
  ExpectMistake(ReadLibsvm, good, "1 3:inf", 5, "'inf' is no value");
  ExpectMistake(ReadLibsvm, good, "1 3:1e60", 5, "'1e60' is no value");
  ExpectMistake(ReadLibsvm, good, std::string("1 \x01\xff:1", 6), 3, R"('\x01\xff' is no index)");
  ExpectMistake(ReadLibsvm, good, "1 " + std::string(1000, 'x'), 3, "xxx...' is no feature");
}

TEST(LibsvmReaderTest, SaysThatNothingIsThere) {
  EXPECT_EQ(ReadLibsvm(::testing::TempDir() + "/none").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(ReadLibsvm(Write("\n# none\n")).status().message()),
              HasSubstr("it has no sample"));
}

// A line whose columns are these; the others are empty, and the label is 1.
std::string CriteoLine(const std::vector<std::pair<size_t, std::string>>& columns,
                       size_t count = 40) {
  std::string line;
  for (size_t i = 0; i < count; ++i) {
    std::string text = i == 0 ? "1" : "";
    for (const auto& [place, other] : columns) {
      if (place == i) text = other;
    }
    absl::StrAppend(&line, i > 0 ? "\t" : "", text);
  }
  return line;
}

TEST(CriteoReaderTest, ReadsLabelsNumbersAndIds) {
  const absl::StatusOr<Samples> samples = ReadCriteo(Write(absl::StrCat(
      CriteoLine({{0, "1"}, {1, "2"}, {13, "-1"}, {14, "68fd1e64"}, {39, "B"}}), "\n",
      CriteoLine({{0, "0"}, {2, "2"}, {15, "68fd1e64"}}), "\n", CriteoLine({{0, "0"}}))));
  ASSERT_TRUE(samples.ok()) << samples.status();
  ASSERT_EQ(samples->size(), 3u);
  EXPECT_EQ(samples->label(0), 1);
  EXPECT_EQ(samples->label(1), 0);
  EXPECT_THAT(samples->features(0).keys,
              ElementsAre(CriteoNumberKey(1, 2), CriteoNumberKey(13, -1),
                          CriteoIdKey(1, 0x68fd1e64), CriteoIdKey(26, 0xb)));
  EXPECT_THAT(samples->features(0).values, ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(samples->features(1).keys,
              ElementsAre(CriteoNumberKey(2, 2), CriteoIdKey(2, 0x68fd1e64)));
  EXPECT_THAT(samples->features(2).keys, ElementsAre());
}

TEST(CriteoReaderTest, ColumnsHaveKeysOfTheirOwn) {
  EXPECT_NE(CriteoIdKey(1, 7), CriteoIdKey(2, 7));
  EXPECT_NE(CriteoNumberKey(1, 7), CriteoNumberKey(2, 7));
  EXPECT_NE(CriteoNumberKey(13, 1), CriteoIdKey(1, 1));
  // Small numbers stand for themselves, larger ones for their magnitude.
  EXPECT_NE(CriteoNumberKey(1, 1), CriteoNumberKey(1, 2));
  EXPECT_NE(CriteoNumberKey(1, 2), CriteoNumberKey(1, 3));
  EXPECT_EQ(CriteoNumberKey(1, 1000), CriteoNumberKey(1, 1001));
  EXPECT_NE(CriteoNumberKey(1, 1000), CriteoNumberKey(1, 2000));
}

TEST(CriteoReaderTest, RefusesMalformedLines) {
  const std::string good = CriteoLine({{1, "3"}});
  ExpectMistake(ReadCriteo, good, CriteoLine({}, 39), 40, "after 39 columns instead of 40");
  ExpectMistake(ReadCriteo, good, CriteoLine({}, 41), 42, "after 41 columns instead of 40");
  ExpectMistake(ReadCriteo, good, "", 1, "after 1 columns instead of 40");
  ExpectMistake(ReadCriteo, good, CriteoLine({{0, "2"}}), 1, "'2' is no label");
  ExpectMistake(ReadCriteo, good, CriteoLine({{0, ""}}), 1, "'' is no label");
  ExpectMistake(ReadCriteo, good, CriteoLine({{1, "1.5"}}), 3, "'1.5' is no whole number");
  ExpectMistake(ReadCriteo, good, CriteoLine({{2, " 7"}}), 4, "' 7' is no whole number");
  ExpectMistake(ReadCriteo, good, CriteoLine({{13, "68fd1e64"}}), 15, "'68fd1e64' is no whole");
  ExpectMistake(ReadCriteo, good, CriteoLine({{14, "68fd1eg4"}}), 16, "'68fd1eg4' is no id");
  ExpectMistake(ReadCriteo, good, CriteoLine({{39, "0x12"}}), 41, "'0x12' is no id");
  ExpectMistake(ReadCriteo, good, CriteoLine({{39, "12345678123456781"}}), 41, "is no id");
}

TEST(CriteoReaderTest, SaysThatNothingIsThere) {
  EXPECT_EQ(ReadCriteo(::testing::TempDir() + "/none").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(ReadCriteo(Write("")).status().message()), HasSubstr("it has no line"));
}

}  // namespace
}  // namespace covey::factorization
