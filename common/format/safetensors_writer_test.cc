// SPDX-License-Identifier: Apache-2.0
#include "common/format/safetensors_writer.h"

#include <gtest/gtest.h>

namespace covey {
namespace {

// The length before the text, as a reader takes it.
uint64_t LengthIn(const std::string& head) {
  uint64_t length = 0;
  for (int byte = 7; byte >= 0; --byte) length = length << 8 | static_cast<uint8_t>(head[byte]);
  return length;
}

constexpr SafetensorsType kF32 = SafetensorsType::kF32;

TEST(SafetensorsWriterTest, TensorsLieOneAfterTheOther) {
  const std::vector<SafetensorsTensor> tensors = {
      {"bias", kF32, {3}}, {"scale", SafetensorsType::kF16, {}}, {"weight", kF32, {2, 5}}};
  const std::string head = SafetensorsHead(tensors, {});
  EXPECT_EQ(head.substr(8),
            R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},)"
            R"("scale":{"dtype":"F16","shape":[],"data_offsets":[12,14]},)"
            R"("weight":{"dtype":"F32","shape":[2,5],"data_offsets":[14,54]}}      )");
  EXPECT_EQ(LengthIn(head), head.size() - 8);
  EXPECT_EQ(head.size() % 8, 0u);
}

TEST(SafetensorsWriterTest, NotesStandInTheMetadata) {
  const std::string head =
      SafetensorsHead({}, SafetensorsNotes{{"format", "pt"}, {"job", "a \"b\"\xff"}});
  EXPECT_EQ(head.substr(8, head.find_last_not_of(' ') - 7),
            "{\"__metadata__\":{\"format\":\"pt\",\"job\":\"a \\\"b\\\"\xef\xbf\xbd\"}}");
}

TEST(SafetensorsWriterTest, ALongTextHasItsLengthInSeveralBytes) {
  std::vector<SafetensorsTensor> tensors;
  for (int i = 0; i < 100; ++i) tensors.push_back({"layer." + std::to_string(i), kF32, {1}});
  const std::string head = SafetensorsHead(tensors, {});
  EXPECT_GT(head.size(), 256u);
  EXPECT_EQ(LengthIn(head), head.size() - 8);
}

TEST(SafetensorsWriterTest, AnEmptyFileIsAnEmptyObject) {
  EXPECT_EQ(SafetensorsHead({}, {}).substr(8), "{}      ");
}

TEST(SafetensorsWriterTest, ANameStandsOnce) {
  const std::vector<SafetensorsTensor> twice = {{"x", kF32, {4}}, {"x", kF32, {4}}};
  EXPECT_DEATH(SafetensorsHead(twice, {}), "names.insert");
  const std::vector<SafetensorsTensor> reserved = {{"__metadata__", kF32, {4}}};
  EXPECT_DEATH(SafetensorsHead(reserved, {}), "names.insert");
  EXPECT_DEATH(SafetensorsHead({}, SafetensorsNotes{{"a", "b"}, {"a", "c"}}), "names.insert");
}

TEST(SafetensorsWriterTest, TypesAreKnownByName) {
  EXPECT_EQ(SafetensorsTypeNamed("BF16"), SafetensorsType::kBf16);
  EXPECT_EQ(SafetensorsTypeNamed("F8_E4M3FNUZ"), SafetensorsType::kF8E4M3Fnuz);
  EXPECT_EQ(SafetensorsTypeNamed("f32"), std::nullopt);
  EXPECT_EQ(SafetensorsTypeOf(WireFormat::kInt8Block), std::nullopt);
  for (const WireFormat format :
       {WireFormat::kFloat32, WireFormat::kFloat16, WireFormat::kBfloat16}) {
    EXPECT_EQ(WireFormatOf(SafetensorsTypeOf(format).value()), format);
  }
  EXPECT_EQ(WireFormatOf(SafetensorsType::kU16), std::nullopt);
}

TEST(SafetensorsWriterTest, SizesAreWholeBytesBelow2To61) {
  EXPECT_EQ((SafetensorsTensor{"a", SafetensorsType::kF6E2M3, {2, 4}}.Bytes().value()), 6u);
  EXPECT_FALSE((SafetensorsTensor{"a", SafetensorsType::kF4, {3}}.Bytes().ok()));
  EXPECT_EQ((SafetensorsTensor{"a", kF32, {0, uint64_t{1} << 58}}.Bytes().value()), 0u);
  EXPECT_FALSE((SafetensorsTensor{"a", kF32, {0, uint64_t{1} << 59}}.Bytes().ok()));
  EXPECT_FALSE((SafetensorsTensor{"a", kF32, {uint64_t{1} << 59, 0}}.Bytes().ok()));
}

}  // namespace
}  // namespace covey
