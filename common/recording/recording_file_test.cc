// SPDX-License-Identifier: Apache-2.0
#include "common/recording/recording_file.h"

#include "common/recording/testing/recording_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::vector<uint8_t> Encoded(const RecordingEntry& entry) {
  std::vector<uint8_t> bytes;
  EncodeEntry(entry, bytes);
  return bytes;
}

AppliedRecord FullRecord() {
  AppliedRecord record = UpdateOf(300, 1000, 2);
  record.pushes[0].base_version = 900;
  record.pushes.push_back({.producer_kind = AppliedPush::Producer::kClient,
                           .producer = 9,
                           .incarnation = ~uint64_t{0},
                           .sequence = 4,
                           .group = 0,
                           .step = 0,
                           .samples = 1,
                           .base_version = 0,
                           .discarded = false});
  record.rate_factor = 0.25;
  record.momentum = 0.5;
  record.asynchrony = {.staleness = 1.5, .pushes = 300, .updates_above_target = 2};
  record.payload = {.format = WireFormat::kBfloat16, .bytes = 8, .checksum = 0x01020304};
  return record;
}

std::vector<RecordingEntry> EveryEntry() {
  AppliedRecord discarded;
  discarded.stream = 1;
  discarded.pushes = UpdateOf(1, 2).pushes;
  discarded.pushes[0].discarded = true;
  discarded.pushes[0].group = 0;
  discarded.pushes[0].norm = 2.5;
  discarded.pushes[0].is_beyond_gate = true;
  AppliedRecord cut;
  cut.cut = 17;
  AppliedRecord initial_values;
  initial_values.is_initial_values = true;
  initial_values.payload = {.format = WireFormat::kFloat32, .bytes = 16, .checksum = 7};
  AppliedRecord initial_state = initial_values;
  initial_state.initial_state = {.updates = 300, .samples = 19200};
  initial_state.payload->bytes = 48;
  AppliedRecord functions = UpdateOf(1, 2);
  functions.pushes[0].samples = 0;
  functions.functions = {
      {.kind = VectorFunction::Kind::kAxpy, .target = 300, .source = 2, .scalar = -0.1},
      {.kind = VectorFunction::Kind::kSet, .target = 1}};
  return {BeginOf(SmallTable()),
          functions,
          initial_values,
          initial_state,
          FullRecord(),
          discarded,
          cut,
          ContentDigest{.stream = 2, .digest = 5},
          RecordingEnd{}};
}

TEST(RecordingEntry, AnOrdinaryPushTakes12Bytes) {
  AppliedRecord record = UpdateOf(3, 1000);
  record.pushes[0].base_version = 7000;
  // Kind, stream, flags, count; flags, group, generation, step, samples, base version.
  EXPECT_THAT(Encoded(record), ElementsAre(2, 0, 1, 1, 5, 3, 1, 0xe8, 0x07, 8, 0xd8, 0x36));
}

TEST(RecordingEntry, ReadsWhatItWrites) {
  std::vector<uint8_t> bytes;
  for (const RecordingEntry& entry : EveryEntry()) EncodeEntry(entry, bytes);
  const auto decoded = DecodeEntries(bytes);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, EveryEntry());
}

TEST(RecordingEntry, RefusesEveryTruncation) {
  for (const RecordingEntry& entry : EveryEntry()) {
    const std::vector<uint8_t> bytes = Encoded(entry);
    for (size_t size = 1; size < bytes.size(); ++size) {
      EXPECT_FALSE(DecodeEntries(std::span(bytes).first(size)).ok()) << size;
    }
  }
}

TEST(RecordingEntry, RefusesASecondWayToWriteAValue) {
  const auto refusal = [](std::vector<uint8_t> bytes) {
    return std::string(DecodeEntries(bytes).status().message());
  };
  EXPECT_THAT(refusal({9}), HasSubstr("of kind 9"));
  EXPECT_THAT(refusal({4, 0}), HasSubstr("the entry at byte 1 is of kind 0"));
  // Stream 0 as two bytes; the flags of no record; 65 bits.
  EXPECT_THAT(refusal({2, 0x80, 0, 0, 0}), HasSubstr("shortest form"));
  EXPECT_THAT(refusal({2, 0, 128, 0, 0, 0}), HasSubstr("a state comes with initial values"));
  EXPECT_THAT(refusal({2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0}),
              HasSubstr("64 bits"));
  // A group and its step in full.
  EXPECT_THAT(refusal({2, 0, 1, 1, 1, 3, 1, 5, 3, 5, 8, 0}), HasSubstr("twice"));
  // An asynchrony of nothing, one below 0, and one without an update.
  EXPECT_THAT(refusal({2, 0, 33, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), HasSubstr("asynchrony"));
  EXPECT_THAT(refusal({2, 0, 33, 0, 0, 0, 0, 0, 0, 0, 0, 0xc0, 1, 0}), HasSubstr("asynchrony"));
  EXPECT_THAT(refusal({2, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 1, 0}), HasSubstr("to an update"));
  // A cut with an update.
  EXPECT_THAT(refusal({2, 0, 9, 0, 17}), HasSubstr("a cut"));
  // Initial values with an update.
  EXPECT_THAT(refusal({2, 0, 65, 0}), HasSubstr("initial values"));
  // More pushes than bytes.
  EXPECT_THAT(refusal({2, 0, 1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0}), HasSubstr("longer"));
}

TEST(RecordingFile, Names) {
  const RecordingFileId id{.node = 12, .loop = 3, .number = 4};
  EXPECT_EQ(RecordingFileName(id), "recording-12-3-00004.cvr");
  EXPECT_EQ(ParseRecordingFileName("recording-12-3-00004.cvr"), id);
  for (const char* other :
       {"recording-12-3-4.cvr", "recording-12-3-00004.cvr.new", "recording-.cvr",
        "recording-+2-3-00004.cvr", "part-12-3-000.cvp", ""}) {
    EXPECT_FALSE(ParseRecordingFileName(other)) << other;
  }
}

std::string SmallFile() {
  return RecordingBuilder()
      .Add(BeginOf(SmallTable()))
      .Add(UpdateOf(1, 1), {1, 2, 3, 4})
      .EndBlock()
      .Add(UpdateOf(2, 1), {5, 6, 7, 8})
      .Add(ContentDigest{.stream = 0, .digest = 3})
      .Add(RecordingEnd{})
      .EndBlock()
      .bytes();
}

TEST(RecordingFile, ReadsBlocksAndPlaces) {
  const std::string file = SmallFile();
  const auto content = DecodeRecordingFile(BytesOf(file));
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->header.job, 7u);
  EXPECT_EQ(content->intact_bytes, file.size());
  ASSERT_EQ(content->blocks.size(), 2u);
  EXPECT_EQ(content->blocks[0].offset, kRecordingHeaderBytes);
  EXPECT_EQ(content->blocks[1].entries.size(), 3u);
  EXPECT_EQ(content->blocks[1].payload_offset + 16, file.size());
}

TEST(RecordingFile, ATornEndIsLeftOut) {
  const std::string file = SmallFile();
  const size_t second = DecodeRecordingFile(BytesOf(file))->blocks[1].offset;
  for (size_t size = kRecordingHeaderBytes; size < file.size(); ++size) {
    for (const std::string& lost : {std::string(), std::string(100, '\0')}) {
      // Zeros behind a block that has begun are damage, as far as its head can tell.
      if (!lost.empty() && size != second) continue;
      const std::string torn = file.substr(0, size) + lost;
      const auto content = DecodeRecordingFile(BytesOf(torn));
      ASSERT_TRUE(content.ok()) << size << ": " << content.status();
      EXPECT_EQ(content->blocks.size(), size >= second ? 1u : 0u) << size;
    }
  }
}

TEST(RecordingFile, NoFlippedBitPasses) {
  const std::string file = SmallFile();
  const auto whole = DecodeRecordingFile(BytesOf(file));
  for (size_t at = 0; at < file.size(); ++at) {
    std::string flipped = file;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    const auto content = DecodeRecordingFile(BytesOf(flipped));
    const auto is_gradient = [&](const RecordingBlock& block) {
      return at >= block.payload_offset && at < block.payload_offset + 16;
    };
    if (is_gradient(whole->blocks[0]) || is_gradient(whole->blocks[1])) continue;
    ASSERT_FALSE(content.ok()) << at;
    const size_t block = at < kRecordingHeaderBytes     ? 0
                         : at < whole->blocks[1].offset ? kRecordingHeaderBytes
                                                        : whole->blocks[1].offset;
    EXPECT_THAT(std::string(content.status().message()),
                ::testing::AnyOf(HasSubstr("offset " + std::to_string(block) + ":"),
                                 HasSubstr("use the version")))
        << at;
  }
}

}  // namespace
}  // namespace covey
