// SPDX-License-Identifier: Apache-2.0
#include "common/format/checkpoint_index.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/status/status.h"
#include "common/base/random.h"

namespace covey {
namespace {

using Files = std::map<std::string, std::string>;

constexpr char kGood[] =
    R"({"metadata": {"total_size": 12, "weight_map": {"x": 1}, "deep": [[{"y": [null]}]]},
        "weight_map": {"h.0": "model-1.safetensors", "h.1": "model-2.safetensors"}, "z": [1]})";

TEST(CheckpointIndexTest, TheMapIsRead) {
  const auto files = ReadCheckpointIndex(kGood);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(*files, (Files{{"h.0", "model-1.safetensors"}, {"h.1", "model-2.safetensors"}}));
}

TEST(CheckpointIndexTest, AnythingElseIsRefused) {
  const std::map<std::string, std::string> wrongs = {
      {"", "no JSON text at byte 0"},
      {"[]", "no JSON object"},
      {"7", "no JSON object"},
      {"{}", "no \"weight_map\""},
      {R"({"weight_map": {}})", "no \"weight_map\""},
      {R"({"weight_map": ["a"]})", "\"weight_map\" is no object"},
      {R"({"weight_map": {"a": 1}})", "tensor \"a\" has no file's name"},
      {R"({"weight_map": {"a": {"b": "c"}}})", "tensor \"a\" has no file's name"},
      {R"({"weight_map": {"a": ["b"]}})", "tensor \"a\" has no file's name"},
      {R"({"weight_map": {"a": "b", "a": "c"}})", "tensor \"a\" occurs twice"},
      {R"({"weight_map": {"a": "../b"}})", "no name of a file in the model's folder"},
      {R"({"weight_map": {"a": "/etc/passwd"}})", "no name of a file in the model's folder"},
      {R"({"weight_map": {"a": ""}})", "no name of a file in the model's folder"},
      {R"({"weight_map": {"a": "b"}} x)", "no JSON text at byte 27"},
      {R"({"weight_map": {"a": "b")", "no JSON text at byte 24"},
  };
  for (const auto& [text, message] : wrongs) {
    const absl::Status status = ReadCheckpointIndex(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text << ": " << status;
    EXPECT_NE(status.message().find(message), std::string::npos) << text << ": " << status;
  }
  const std::string large(CheckpointIndexLimits::kTextBytes + 1, ' ');
  EXPECT_TRUE(absl::IsInvalidArgument(ReadCheckpointIndex(large).status()));
}

TEST(CheckpointIndexTest, NestingCostsNothing) {
  const std::string deep = R"({"metadata": )" + std::string(1 << 20, '[');
  EXPECT_TRUE(absl::IsInvalidArgument(ReadCheckpointIndex(deep).status()));
}

TEST(CheckpointIndexTest, NoBytesCrashIt) {
  Random random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string text = kGood;
    for (uint64_t flips = 1 + random.Below(3); flips > 0; --flips) {
      text[random.Below(text.size())] ^= static_cast<char>(1 + random.Below(255));
    }
    const auto files = ReadCheckpointIndex(text);
    EXPECT_TRUE(files.ok() || absl::IsInvalidArgument(files.status())) << files.status();
  }
}

}  // namespace
}  // namespace covey
