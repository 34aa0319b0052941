// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/rows/line_reader.h"

#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::examples {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string PathOf(const std::string& name) { return ::testing::TempDir() + "/" + name; }

std::string Write(const std::string& name, const std::string& content) {
  std::ofstream(PathOf(name), std::ios::binary) << content;
  return PathOf(name);
}

// The lines, and then the error if there is one.
std::vector<std::string> AllOf(absl::StatusOr<LineReader> reader) {
  std::vector<std::string> lines;
  while (reader.ok()) {
    const auto line = reader->Next();
    if (!line.ok()) {
      lines.push_back(std::string(line.status().message()));
      break;
    }
    if (!line->has_value()) return lines;
    lines.push_back(std::string(**line));
    EXPECT_EQ(reader->number(), lines.size());
  }
  return lines;
}

TEST(LineReaderTest, ReadsLinesWithAndWithoutAnEnd) {
  EXPECT_THAT(AllOf(LineReader::OpenFile(Write("lines", "one\n\nthree\r\nfour"))),
              ElementsAre("one", "", "three", "four"));
  EXPECT_THAT(AllOf(LineReader::OpenFile(Write("empty", ""))), ElementsAre());
}

TEST(LineReaderTest, ReadsLinesAcrossItsBuffers) {
  std::string content;
  std::vector<std::string> expected;
  for (size_t i = 0; i < 3000; ++i) {
    expected.push_back(std::string(i % 97, 'x') + std::to_string(i));
    content += expected.back() + "\n";
  }
  expected.push_back(std::string(300'000, 'y'));
  content += expected.back() + "\n";
  EXPECT_EQ(AllOf(LineReader::OpenFile(Write("many", content))), expected);
}

TEST(LineReaderTest, ReadsCompressedFiles) {
  const std::string path = PathOf("lines.gz");
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, "a\nb\n", 4), 4);
  ASSERT_EQ(gzclose(file), Z_OK);
  EXPECT_THAT(AllOf(LineReader::OpenFile(path)), ElementsAre("a", "b"));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 6);
  EXPECT_THAT(AllOf(LineReader::OpenFile(path)).back(), HasSubstr("truncated"));
}

TEST(LineReaderTest, ReadsWhatACommandPrints) {
  EXPECT_THAT(AllOf(LineReader::OpenCommand("echo one; echo two")), ElementsAre("one", "two"));
  EXPECT_THAT(AllOf(LineReader::OpenCommand("echo one; exit 7")),
              ElementsAre("one", HasSubstr("`echo one; exit 7`: it ended with code 7")));
  EXPECT_THAT(AllOf(LineReader::OpenCommand("kill -9 $$")), ElementsAre(HasSubstr("was killed")));
  // A reader that ends early ends the command.
  absl::StatusOr<LineReader> reader = LineReader::OpenCommand("yes");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(**reader->Next(), "y");
}

TEST(LineReaderTest, RefusesLinesThatAreTooLong) {
  const std::string path = Write("long", std::string(LineReader::kLineBytesMax + 100'000, 'z'));
  EXPECT_THAT(
      AllOf(LineReader::OpenFile(path)),
      ElementsAre(HasSubstr(absl::StrCat("line 1 has more than ", LineReader::kLineBytesMax))));
}

TEST(LineReaderTest, NamesAFileThatIsMissing) {
  const absl::Status status = LineReader::OpenFile(PathOf("none")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(PathOf("none") + ": No such file"));
}

}  // namespace
}  // namespace covey::examples
