// SPDX-License-Identifier: Apache-2.0
#include "common/format/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/format/testing/file_text.h"
#include "common/format/testing/golden_npy.h"

namespace covey {
namespace {

using testing::HasSubstr;

// A file of version 1 with this text and 8 bytes of data.
std::string FileOf(absl::string_view text) {
  const char length[] = {static_cast<char>(text.size()), static_cast<char>(text.size() >> 8)};
  return absl::StrCat(absl::string_view("\x93NUMPY\1\0", 8), absl::string_view(length, 2), text,
                      std::string(8, '\0'));
}

// A file with this shape.
std::string ShapeFile(absl::string_view shape) {
  return FileOf(
      absl::StrCat("{'descr': '<f4', 'fortran_order': False, 'shape': ", shape, ", }   \n"));
}

// A file of elements of this type, as Python text.
std::string TypeFile(absl::string_view type) {
  return FileOf(absl::StrCat("{'descr': ", type, ", 'fortran_order': False, 'shape': (2,), }\n"));
}

// The reason why the file is refused; empty = it is accepted.
std::string Refusal(absl::string_view file) {
  const auto array = ReadNpy(file);
  if (array.ok()) return "";
  EXPECT_EQ(array.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_LT(array.status().message().size(), 300u);
  return std::string(array.status().message());
}

struct BadFile {
  std::string file;
  const char* reason;
};

void ExpectRefused(const std::vector<BadFile>& files) {
  for (const BadFile& bad : files) {
    EXPECT_THAT(Refusal(bad.file), HasSubstr(bad.reason)) << absl::CHexEscape(bad.file);
  }
}

TEST(NpyTest, ReadsWhatNumPyWrites) {
  for (const GoldenNpy& golden : kGoldenNpy) {
    const auto array = ReadNpy(absl::HexStringToBytes(golden.file));
    ASSERT_TRUE(array.ok()) << golden.title << ": " << array.status();
    EXPECT_EQ(Describe(*array), golden.content) << golden.title;
  }
}

TEST(NpyTest, RefusesOtherElementsAndOrders) {
  for (const GoldenNpy& golden : kForeignNpy) {
    EXPECT_THAT(Refusal(absl::HexStringToBytes(golden.file)), HasSubstr(golden.content))
        << golden.title;
  }
  ASSERT_EQ(Refusal(TypeFile("'<f4'")), "");
  ExpectRefused({
      {TypeFile("'f4'"), "only float32 ('<f4') and float16 ('<f2') are read"},
      {TypeFile("'<f8'"), "save array.astype('<f4')"},
      {TypeFile("'O'"), "never loaded"},
      {TypeFile("''"), "only float32"},
      {TypeFile("('<f4', (2,))"), "a text in quotation marks is missing"},
      {TypeFile("f4"), "a text in quotation marks is missing"},
      {TypeFile("__import__('os')"), "a text in quotation marks is missing"},
      {TypeFile("'<f' '4'"), "'}' is missing"},
  });
}

TEST(NpyTest, RefusesWrongSizes) {
  const std::string valid = ShapeFile("(2,)");
  ASSERT_EQ(Refusal(valid), "");
  std::string version = valid;
  version[6] = 4;
  std::string minor = valid;
  minor[7] = 1;
  ExpectRefused({
      {"", "no NPY file is so short: 0 bytes"},
      {valid.substr(0, 11), "no NPY file is so short: 11 bytes"},
      {valid.substr(0, 12), "and the file has 12"},
      {valid.substr(0, valid.size() - 1), "the array has 8 bytes, and 7 follow"},
      {valid + "x", "the array has 8 bytes, and 9 follow"},
      {absl::StrCat("\x94", valid.substr(1)), "begins with \\x93NUMPY"},
      {absl::StrCat("PK", valid), "begins with \\x93NUMPY"},
      {version, "version 4.0"},
      {minor, "version 1.1"},
      {absl::StrCat(absl::string_view("\x93NUMPY\2\0\xff\xff\xff\xff", 12), valid),
       "a head of 4294967295 bytes; at most 4096"},
      {absl::StrCat(absl::string_view("\x93NUMPY\1\0\1\x10", 10), std::string(9000, ' ')),
       "a head of 4097 bytes; at most 4096"},
  });
  EXPECT_FALSE(ReadNpyHead(BytesOf(valid).first(30), valid.size()).ok());
}

TEST(NpyTest, KeysComeInAnyOrderAndWithEitherQuotes) {
  EXPECT_EQ(Refusal(FileOf("{\"shape\":(2,),'descr':\"<f4\",'fortran_order':False}\n")), "");
  EXPECT_EQ(
      Refusal(FileOf("{ 'shape' : ( 2 , ) , 'descr' : '<f4' , 'fortran_order' : False , }\n")), "");
}

TEST(NpyTest, RefusesOtherText) {
  const std::string rest = "'fortran_order': False, 'shape': (2,), }\n";
  const std::string type = "{'descr': '<f4', ";
  ASSERT_EQ(Refusal(FileOf(type + rest)), "");
  ExpectRefused({
      {FileOf(""), "no head is so short: 10 bytes"},
      {FileOf("  \n"), "'{' is missing"},
      {FileOf("{}\n"), "the key 'descr' is missing"},
      {FileOf("{" + rest), "the key 'descr' is missing"},
      {FileOf("{'descr': '<f4', 'shape': (2,)}\n"), "the key 'fortran_order' is missing"},
      {FileOf("{'descr': '<f4', 'fortran_order': False}\n"), "the key 'shape' is missing"},
      {FileOf(type + "'descr': '<f4', " + rest), "the key 'descr' occurs twice"},
      {FileOf(type + "'fortran_order': False, " + rest), "the key 'fortran_order' occurs twice"},
      {FileOf(type + "'shape': (2,), " + rest), "the key 'shape' occurs twice"},
      {FileOf(type + "'x': 1, " + rest), "unknown key 'x'"},
      {FileOf(type + "'" + std::string(3000, 'x') + "': 1, " + rest), "unknown key 'xxx"},
      {FileOf(type + "1: 2, " + rest), "a text in quotation marks is missing"},
      {FileOf(type + "'fortran_order': 0, 'shape': (2,), }\n"), "False or True is missing"},
      {FileOf(type + "'fortran_order': false, 'shape': (2,), }\n"), "False or True is missing"},
      {FileOf("{'descr' '<f4', " + rest), "byte 19: ':' is missing"},
      {FileOf("{'descr': '<f4' " + rest), "'}' is missing"},
      {FileOf(type + "," + rest), "a text in quotation marks is missing"},
      {FileOf("{'descr': '<f4"), "a text does not end"},
      {FileOf("{'desc\\x72': '<f4', " + rest), "escaped"},
      {FileOf("{'descr\xc3\xa9': '<f4', " + rest), "non-ASCII"},
      {FileOf(absl::string_view("{'descr\0': '<f4', ", 18)), "control"},
      {FileOf(type + "'fortran_order': False, 'shape': (2,), }"), "the newline at the end"},
      {FileOf(type + "'fortran_order': False, 'shape': (2,), }\n "), "after the newline"},
      {FileOf(type + "'fortran_order': False, 'shape': (2,), }x\n"), "the newline at the end"},
      {FileOf(type + "'fortran_order': False, 'shape': (2,), # }\n"), "in quotation marks"},
  });
}

TEST(NpyTest, RefusesShapes) {
  ASSERT_EQ(Refusal(ShapeFile("(2,)")), "");
  ASSERT_EQ(Refusal(ShapeFile("(1, 2)")), "");
  ExpectRefused({
      {ShapeFile("(2)"), "',' is missing"},
      {ShapeFile("2"), "'(' is missing"},
      {ShapeFile("[2]"), "'(' is missing"},
      {ShapeFile("(,)"), "a number is missing"},
      {ShapeFile("(2,,)"), "a number is missing"},
      {ShapeFile("(-2,)"), "a number is missing"},
      {ShapeFile("(+2,)"), "a number is missing"},
      {ShapeFile("(0x2,)"), "',' is missing"},
      {ShapeFile("(2L,)"), "',' is missing"},
      {ShapeFile("(2.0,)"), "',' is missing"},
      {ShapeFile("(2e0, 1)"), "',' is missing"},
      {ShapeFile("(1_0,)"), "',' is missing"},
      {ShapeFile("(02,)"), "begins with 0"},
      {ShapeFile("(1, (2,))"), "a number is missing"},
      {ShapeFile("(1, 2"), "a number is missing"},
      {ShapeFile("(1, 2 "), "a number is missing"},
      {ShapeFile("(1 2)"), "',' is missing"},
      {ShapeFile("(1, 2 3)"), "')' is missing"},
      {ShapeFile("(1, 1, 1, 1, 1, 1, 1, 1, 2)"), "more than 8 extents"},
      {ShapeFile("(9223372036854775808,)"), "beyond 2^63 - 1"},
      {ShapeFile("(99999999999999999999,)"), "beyond 2^63 - 1"},
      {ShapeFile("(9223372036854775807,)"), "more than 2^64 bytes"},
      {ShapeFile("(4294967296, 4294967296)"), "more than 2^64 bytes"},
      {ShapeFile("(0, 4294967296, 4294967296)"), "more than 2^64 bytes"},
      {ShapeFile("(4294967296, 4294967296, 0)"), "more than 2^64 bytes"},
      // A product that is 8 bytes modulo 2^64.
      {ShapeFile("(4611686018427387906,)"), "more than 2^64 bytes"},
      {ShapeFile("(3,)"), "the array has 12 bytes, and 8 follow"},
      {ShapeFile("(0,)"), "the array has 0 bytes, and 8 follow"},
  });
}

TEST(NpyTest, WritesWhatItReads) {
  const std::vector<std::vector<uint64_t>> shapes = {
      {}, {0}, {3}, {2, 3}, {1, 1, 2, 1, 1, 1, 1, 1}, {1000000, 0, 1000000}};
  for (const WireFormat format : {WireFormat::kFloat32, WireFormat::kFloat16}) {
    for (const std::vector<uint64_t>& shape : shapes) {
      const std::string head = NpyHead(format, shape);
      EXPECT_EQ(head.size() % 64, 0u);
      uint64_t elements = 1;
      for (const uint64_t extent : shape) elements *= extent;
      const auto array = ReadNpyHead(BytesOf(head), head.size() + EncodedBytes(format, elements));
      ASSERT_TRUE(array.ok()) << array.status();
      EXPECT_EQ(*array, (NpyArray{.format = format, .shape = shape, .begin = head.size()}));
    }
  }
  EXPECT_EQ(NpyHead(WireFormat::kFloat32, std::vector<uint64_t>{2, 3}).substr(10, 60),
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } ");
  EXPECT_FALSE(NpyHas(WireFormat::kBfloat16));
  EXPECT_DEATH(NpyHead(WireFormat::kBfloat16, {}), "NpyHas");
  EXPECT_EQ(NpyKeysHead(7).substr(10, 57),
            "{'descr': '<u8', 'fortran_order': False, 'shape': (7,), }");
  EXPECT_EQ(NpyKeysHead(7).size() % 64, 0);
}

}  // namespace
}  // namespace covey
