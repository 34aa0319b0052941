// SPDX-License-Identifier: Apache-2.0
#include "client/cli/model/safetensors.h"

#include <gtest/gtest.h>

namespace covey::cli {
namespace {

using Notes = std::vector<std::pair<std::string, std::string>>;

// The length before the text, as a reader takes it.
uint64_t LengthIn(const std::string& head) {
  uint64_t length = 0;
  for (int byte = 7; byte >= 0; --byte) length = length << 8 | static_cast<uint8_t>(head[byte]);
  return length;
}

TEST(SafetensorsTest, TensorsLieOneAfterTheOther) {
  const std::vector<SafetensorsEntry> entries = {{"bias", {3}}, {"scale", {}}, {"weight", {2, 5}}};
  const std::string head = SafetensorsHead(WireFormat::kFloat32, entries, {});
  EXPECT_EQ(head.substr(8),
            R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},)"
            R"("scale":{"dtype":"F32","shape":[],"data_offsets":[12,16]},)"
            R"("weight":{"dtype":"F32","shape":[2,5],"data_offsets":[16,56]}}      )");
  EXPECT_EQ(LengthIn(head), head.size() - 8);
  EXPECT_EQ(head.size() % 8, 0u);
}

TEST(SafetensorsTest, TypesHaveTheirNamesAndSizes) {
  const std::vector<SafetensorsEntry> entries = {{"x", {4}}};
  EXPECT_NE(SafetensorsHead(WireFormat::kFloat16, entries, {})
                .find(R"("dtype":"F16","shape":[4],"data_offsets":[0,8])"),
            std::string::npos);
  EXPECT_NE(SafetensorsHead(WireFormat::kBfloat16, entries, {})
                .find(R"("dtype":"BF16","shape":[4],"data_offsets":[0,8])"),
            std::string::npos);
  EXPECT_FALSE(SafetensorsHas(WireFormat::kInt8Block));
}

TEST(SafetensorsTest, NotesStandInTheMetadata) {
  const std::string head =
      SafetensorsHead(WireFormat::kFloat32, {}, Notes{{"format", "pt"}, {"job", "a \"b\""}});
  EXPECT_EQ(head.substr(8, head.find_last_not_of(' ') - 7),
            R"({"__metadata__":{"format":"pt","job":"a \"b\""}})");
}

TEST(SafetensorsTest, ALongTextHasItsLengthInSeveralBytes) {
  std::vector<SafetensorsEntry> entries;
  for (int i = 0; i < 100; ++i) entries.push_back({"layer." + std::to_string(i), {1}});
  const std::string head = SafetensorsHead(WireFormat::kFloat32, entries, {});
  EXPECT_GT(head.size(), 256u);
  EXPECT_EQ(LengthIn(head), head.size() - 8);
}

TEST(SafetensorsTest, ANameStandsOnce) {
  const std::vector<SafetensorsEntry> entries = {{"x", {4}}, {"x", {4}}};
  EXPECT_DEATH(SafetensorsHead(WireFormat::kFloat32, entries, {}), "contains");
}

}  // namespace
}  // namespace covey::cli
