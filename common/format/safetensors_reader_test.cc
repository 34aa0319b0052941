// SPDX-License-Identifier: Apache-2.0
#include "common/format/safetensors_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/format/testing/file_text.h"
#include "common/format/testing/golden_safetensors.h"

namespace covey {
namespace {

using testing::HasSubstr;

// A file with this JSON text and `data_bytes` zeros after it.
std::string FileOf(absl::string_view json, size_t data_bytes) {
  return absl::StrCat(HeadOf(json), std::string(data_bytes, '\0'));
}

// A file with one tensor, whose description is given, and 8 bytes of data.
std::string TensorFile(absl::string_view entry) {
  return FileOf(absl::StrCat(R"({"w":{)", entry, "}}"), 8);
}

// The reason why the file is refused; empty = it is accepted.
std::string Refusal(absl::string_view file) {
  const auto content = ReadSafetensors(file);
  if (content.ok()) return "";
  EXPECT_EQ(content.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_LT(content.status().message().size(), 400u);
  return std::string(content.status().message());
}

TEST(SafetensorsReaderTest, ReadsWhatTheReferenceLibraryWrites) {
  for (const GoldenSafetensors& golden : kGoldenSafetensors) {
    const auto content = ReadSafetensors(absl::HexStringToBytes(golden.file));
    ASSERT_TRUE(content.ok()) << golden.title << ": " << content.status();
    EXPECT_EQ(Describe(*content), golden.content) << golden.title;
  }
}

struct BadFile {
  std::string file;
  const char* reason;
};

void ExpectRefused(const std::vector<BadFile>& files) {
  for (const BadFile& bad : files) {
    const absl::string_view shown = absl::string_view(bad.file).substr(0, 200);
    EXPECT_THAT(Refusal(bad.file), HasSubstr(bad.reason)) << absl::CHexEscape(shown);
  }
}

TEST(SafetensorsReaderTest, RefusesWrongSizes) {
  const std::string valid = TensorFile(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])");
  ASSERT_EQ(Refusal(valid), "");
  ExpectRefused({
      {"", "the file has 0 bytes"},
      {valid.substr(0, 7), "the file has 7 bytes"},
      {valid.substr(0, 8), "and the file has 8"},
      {valid.substr(0, 40), "and the file has 40"},
      {valid.substr(0, valid.size() - 1), "end at byte 8 of the data, which has 7"},
      {valid + "x", "the file has 1 bytes more"},
      {absl::StrCat("\x01\xe1\xf5\x05", std::string(4, '\0'), "{}"), "100000001 bytes; at most"},
      {std::string(16, '\xff'), "18446744073709551615 bytes; at most"},
      {std::string(8, '\0'), "does not begin with '{'"},
  });
  // Of a length that is allowed, only the prefix has to be there to know the size.
  EXPECT_EQ(SafetensorsHeadBytes(BytesOf(absl::string_view("\x00\xe1\xf5\x05\0\0\0\0", 8)), 1 << 30)
                .value(),
            100'000'008u);
  EXPECT_FALSE(ReadSafetensorsHead(BytesOf(valid).first(20), valid.size()).ok());
}

TEST(SafetensorsReaderTest, RefusesTextThatIsNoJsonObject) {
  ExpectRefused({
      {FileOf("[]", 0), "does not begin with '{'"},
      {FileOf(" {}", 0), "does not begin with '{'"},
      {FileOf("\xef\xbb\xbf{}", 0), "does not begin with '{'"},
      {FileOf("{", 0), "does not end with '}'"},
      {FileOf("{}\n", 0), "byte 10: the head does not end with '}'"},
      {FileOf("{}x", 0), "does not end with '}'"},
      {FileOf("{}{}", 0), "expected end of input"},
      {FileOf("{}}", 0), "expected end of input"},
      {FileOf(absl::string_view("{}\0}", 4), 0), "byte 10: a zero byte"},
      {FileOf("{/**/}", 0), "syntax error"},
      {FileOf("{'a':1}", 0), "syntax error"},
      {FileOf("{\"a\"}", 0), "syntax error"},
      {FileOf("{\"a\":}", 0), "syntax error"},
      {FileOf("{\"a\":{},}", 0), "tensor 'a', dtype is missing"},
      {FileOf("{\"__metadata__\":{},}", 0), "byte 27: "},
      {FileOf("{\"a\nb\":{}}", 0), "control character"},
      {FileOf("{\"a\xff\":{}}", 0), "byte 11: "},
      {FileOf("{\"a\xff\":{}}", 0), "ill-formed UTF-8"},
      {FileOf("{\"\xc0\x80\":{}}", 0), "ill-formed UTF-8"},
      {FileOf("{\"\xed\xa0\x80\":{}}", 0), "ill-formed UTF-8"},
      {FileOf("{\"\\ud800\":{}}", 0), "surrogate"},
      {FileOf("{\"\\x\":{}}", 0), "syntax error"},
      {FileOf(absl::StrCat("{\"", std::string(100000, 'a'), "\xff\":{}}"), 0), "ill-formed UTF-8"},
  });
}

TEST(SafetensorsReaderTest, RefusesNames) {
  const std::string empty = R"({"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  const auto two = [&](absl::string_view first, absl::string_view second) {
    return FileOf(absl::StrCat("{", first, ":", empty, ",", second, ":", empty, "}"), 0);
  };
  ASSERT_EQ(Refusal(two(R"("a")", R"("b")")), "");
  ExpectRefused({
      {two(R"("a")", R"("a")"), "tensor 'a': the name occurs twice"},
      {two(R"("a")", R"("\u0061")"), "tensor 'a': the name occurs twice"},
      {two(R"("\u0000")", R"("b")"), "the name has a control character"},
      {two(R"("b")", R"("a\u001b[31m")"), R"('a\x1b[31m': the name has a control character)"},
      {two(R"("\u007f")", R"("b")"), "the name has a control character"},
      {FileOf(R"({"__metadata__":{"a":"b","a":"b"}})", 0), "'a': the name occurs twice"},
      {FileOf(R"({"__metadata__":{},"__metadata__":{}})", 0), "the name occurs twice"},
      {FileOf(R"({"__metadata__":{"a":1}})", 0), "__metadata__, 'a': a number is misplaced"},
      {FileOf(R"({"__metadata__":{"a":null}})", 0), "null is misplaced"},
      {FileOf(R"({"__metadata__":{"a":{}}})", 0), "an object is misplaced"},
      {FileOf(R"({"__metadata__":["a"]})", 0), "an array is misplaced"},
      {FileOf(R"({"__metadata__":"a"})", 0), "a text is misplaced"},
      {FileOf(absl::StrCat("{\"__metadata__\":", empty, "}"), 0), "an array is misplaced"},
  });
}

TEST(SafetensorsReaderTest, RefusesDescriptions) {
  ExpectRefused({
      {FileOf(R"({"w":1})", 8), "value of 'w': a number is misplaced"},
      {FileOf(R"({"w":[]})", 8), "an array is misplaced"},
      {TensorFile(""), "tensor 'w', dtype is missing"},
      {TensorFile(R"("shape":[2],"data_offsets":[0,8])"), "dtype is missing"},
      {TensorFile(R"("dtype":"F32","data_offsets":[0,8])"), "shape is missing"},
      {TensorFile(R"("dtype":"F32","shape":[2])"), "data_offsets are missing"},
      {TensorFile(R"("dtype":"F32","shape":[2],"data_offsets":[0])"), "are not two numbers"},
      {TensorFile(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,8])"), "more than 2"},
      {TensorFile(R"("dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1)"), "no such field"},
      {TensorFile(R"("dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8])"),
       "'dtype': the name occurs twice"},
      {TensorFile(R"("dtype":"F32","shape":[1],"shape":[2],"data_offsets":[0,8])"),
       "'shape': the name occurs twice"},
      {TensorFile(R"("dtype":"F32","shape":[2],"data_offsets":[0,8],"data_offsets":[0,8])"),
       "'data_offsets': the name occurs twice"},
      {TensorFile(R"("dtype":"F33","shape":[2],"data_offsets":[0,8])"), "unknown type 'F33'"},
      {TensorFile(R"("dtype":"f32","shape":[2],"data_offsets":[0,8])"), "unknown type 'f32'"},
      {TensorFile(R"("dtype":["F32"],"shape":[2],"data_offsets":[0,8])"), "an array is misplaced"},
      {TensorFile(R"("dtype":4,"shape":[2],"data_offsets":[0,8])"), "a number is misplaced"},
      {TensorFile(R"("dtype":"F32","shape":2,"data_offsets":[0,8])"), "a number is misplaced"},
      {TensorFile(R"("dtype":"F32","shape":"2","data_offsets":[0,8])"), "a text is misplaced"},
      {TensorFile(R"("dtype":"F32","shape":[[2]],"data_offsets":[0,8])"), "an array is misplaced"},
      {TensorFile(R"("dtype":"F32","shape":[{}],"data_offsets":[0,8])"), "an object is misplaced"},
      {TensorFile(R"("dtype":"F32","shape":["2"],"data_offsets":[0,8])"), "a text is misplaced"},
      {TensorFile(R"("dtype":"F32","shape":[null],"data_offsets":[0,8])"), "null is misplaced"},
      {TensorFile(R"("dtype":"F32","shape":[true],"data_offsets":[0,8])"), "a boolean is mis"},
      {TensorFile(R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8])"),
       "more than 8"},
  });
}

TEST(SafetensorsReaderTest, RefusesNumbers) {
  const auto shape = [](absl::string_view number) {
    return TensorFile(
        absl::StrCat(R"("dtype":"F32","shape":[)", number, R"(],"data_offsets":[0,8])"));
  };
  ASSERT_EQ(Refusal(shape("2")), "");
  ExpectRefused({
      {shape("-2"), "'shape': a number below 0, or -0 is misplaced"},
      {shape("-0"), "a number below 0, or -0 is misplaced"},
      {shape("2e0"), "not written as an integer"},
      {shape("2.0"), "not written as an integer"},
      {shape("1e999"), "number overflow"},
      {shape("02"), "syntax error"},
      {shape("+2"), "syntax error"},
      {shape("0x2"), "syntax error"},
      {shape("NaN"), "syntax error"},
      {shape("9223372036854775808"), "beyond 2^63 - 1"},
      {shape("18446744073709551616"), "beyond 2^64"},
      {shape("9223372036854775807"), "more than 2^64 bits"},
      {shape("4294967296,4294967296"), "more than 2^64 bits"},
      // A product that is 8 bytes modulo 2^64.
      {shape("2305843009213693953,2"), "more than 2^64 bits"},
      {shape("0,4294967296,4294967296"), "more than 2^64 bits"},
      {shape("4294967296,4294967296,0"), "more than 2^64 bits"},
      {shape("1"), "data_offsets 0 to 8 for 4 bytes"},
      {shape("3"), "data_offsets 0 to 8 for 12 bytes"},
      {shape("0"), "data_offsets 0 to 8 for 0 bytes"},
      {TensorFile(R"("dtype":"F4","shape":[15],"data_offsets":[0,8])"), "no whole bytes"},
      {TensorFile(R"("dtype":"F6_E2M3","shape":[9],"data_offsets":[0,8])"), "no whole bytes"},
      {TensorFile(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), "there is a hole"},
      {TensorFile(R"("dtype":"F32","shape":[2],"data_offsets":[0,-8])"), "below 0"},
      {TensorFile(R"("dtype":"F32","shape":[4],"data_offsets":[0,16])"), "which has 8"},
  });
}

TEST(SafetensorsReaderTest, RefusesDataThatDoNotTile) {
  const auto three = [](absl::string_view a, absl::string_view b, absl::string_view c) {
    const auto entry = [](absl::string_view name, absl::string_view offsets) {
      return absl::StrCat("\"", name, R"(":{"dtype":"U8","shape":[2],"data_offsets":[)", offsets,
                          "]}");
    };
    return FileOf(absl::StrCat("{", entry("a", a), ",", entry("b", b), ",", entry("c", c), "}"), 6);
  };
  // In any order of the text.
  ASSERT_EQ(Refusal(three("0,2", "2,4", "4,6")), "");
  ASSERT_EQ(Refusal(three("4,6", "0,2", "2,4")), "");
  ExpectRefused({
      {three("0,2", "0,2", "4,6"), "tensor 'b': its data begin at byte 0 of the data"},
      {three("0,2", "1,3", "4,6"), "they overlap"},
      {three("0,2", "3,5", "5,7"), "there is a hole"},
      {three("1,3", "3,5", "5,7"), "tensor 'a': its data begin at byte 1"},
      {three("0,2", "2,4", "2,4"), "tensor 'c': its data begin at byte 2"},
      {three("0,2", "2,4", "5,7"), "there is a hole"},
  });
}

TEST(SafetensorsReaderTest, AnEmptyTensorBeginsWhereAnotherOneDoes) {
  const auto content =
      ReadSafetensors(FileOf(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                             R"("z":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                             2));
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(Describe(*content), "z U8 [0] 113-113; a U8 [2] 113-115");
}

TEST(SafetensorsReaderTest, BoundsWhatATextCosts) {
  // Deep nesting, in a place where a value belongs.
  const std::string deep(1'000'000, '[');
  EXPECT_THAT(Refusal(FileOf(absl::StrCat(R"({"w":{"shape":)", deep, "}}"), 0)),
              HasSubstr("an array is misplaced"));
  EXPECT_THAT(Refusal(FileOf(absl::StrCat(R"({"w":{"x":)", deep, "}}"), 0)),
              HasSubstr("no such field"));

  const auto tensors = [](size_t count) {
    std::string json = "{";
    for (size_t i = 0; i < count; ++i) {
      absl::StrAppend(&json, i == 0 ? "\"" : ",\"", i,
                      R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})");
    }
    return FileOf(absl::StrCat(json, "}"), 0);
  };
  EXPECT_EQ(Refusal(tensors(SafetensorsLimits::kTensors)), "");
  EXPECT_THAT(Refusal(tensors(SafetensorsLimits::kTensors + 1)),
              HasSubstr("more than 1048576 tensors"));

  std::string notes = R"({"__metadata__":{)";
  for (size_t i = 0; i <= SafetensorsLimits::kTensors; ++i) {
    absl::StrAppend(&notes, i == 0 ? "" : ",", R"("":"")");
  }
  EXPECT_THAT(Refusal(FileOf(absl::StrCat(notes, "}}"), 0)), HasSubstr("more than 1048576 texts"));
}

}  // namespace
}  // namespace covey
