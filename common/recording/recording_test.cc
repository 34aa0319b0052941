// SPDX-License-Identifier: Apache-2.0
#include "common/recording/recording.h"

#include "absl/strings/str_cat.h"
#include "common/cluster/limits.h"
#include "common/recording/testing/recording_builder.h"
#include "common/store/testing/memory_folder.h"
#include "common/tensor/wire_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RecordingFileId File(uint64_t node, uint32_t number = 0) {
  return {.node = node, .loop = 1, .number = number};
}

void AddFile(MemoryFolder& folder, const RecordingFileId& id, const RecordingBuilder& file) {
  folder.AddFile(RecordingFileName(id), file.bytes());
}

std::vector<uint64_t> StepsOf(const ShardHistory& shard) {
  std::vector<uint64_t> steps;
  for (const RecordedUpdate& update : shard.updates) {
    steps.push_back(update.record.pushes.at(0).step);
  }
  return steps;
}

// Records 1 … n of group 1, each with a gradient.
RecordingBuilder FileOf(const RecordingFileId& id, const ShardBegin& begin,
                        const std::vector<uint64_t>& steps) {
  RecordingBuilder file(id);
  file.Add(begin);
  for (const uint64_t step : steps) {
    const float element = static_cast<float>(step);
    file.Add(UpdateOf(1, step), {element, 0, 0, 0});
  }
  file.Add(RecordingEnd{}).EndBlock();
  return file;
}

TEST(Recording, PutsTheFilesOfALoopTogether) {
  MemoryFolder folder;
  AddFile(folder, File(2),
          RecordingBuilder(File(2))
              .Add(BeginOf(SmallTable(0, 2)))
              .Add(BeginOf(SmallTable(1, 2), 1))
              .Add(UpdateOf(1, 1, 1), {1, 2, 3, 4})
              .EndBlock());
  AddFile(folder, File(2, 1),
          RecordingBuilder(File(2, 1))
              .Add(UpdateOf(2, 1, 0), {5, 6, 7, 8})
              .Add(UpdateOf(2, 1, 1), {9, 6, 7, 8})
              .Add(ContentDigest{.stream = 1, .digest = 77})
              .Add(RecordingEnd{})
              .EndBlock());
  folder.AddFile("notes.txt", "not a recording");
  const auto recording = Recording::Open(folder);
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_THAT(recording->notes(), IsEmpty());
  EXPECT_THAT(recording->files(),
              ElementsAre("recording-2-1-00000.cvr", "recording-2-1-00001.cvr"));
  ASSERT_EQ(recording->shards().size(), 2u);
  EXPECT_EQ(recording->shards()[1].name, "table 'weights' shard 1");
  const std::vector<RecordedUpdate>& updates = recording->shards()[1].updates;
  ASSERT_EQ(updates.size(), 2u);
  EXPECT_EQ(updates[1].index, 2u);
  EXPECT_EQ(updates[1].version, 2u);
  EXPECT_FALSE(updates[0].digest);
  EXPECT_EQ(updates[1].digest, 77u);
  EXPECT_THAT(recording->ReadGradient(updates[1])->As<float>(), ElementsAre(9, 6, 7, 8));
}

TEST(Recording, NamesADamagedGradient) {
  MemoryFolder folder;
  AddFile(folder, File(2), FileOf(File(2), BeginOf(SmallTable()), {1}));
  const auto recording = Recording::Open(folder);
  ASSERT_TRUE(recording.ok());
  std::string& bytes = folder.BytesOf("recording-2-1-00000.cvr");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  const auto gradient = recording->ReadGradient(recording->shards()[0].updates[0]);
  EXPECT_THAT(std::string(gradient.status().message()),
              HasSubstr(absl::StrCat("recording-2-1-00000.cvr, offset ", bytes.size() - 16)));
}

TEST(Recording, TheNextHeadGoesOnFromWhatItHeld) {
  MemoryFolder folder;
  AddFile(folder, File(2), FileOf(File(2), BeginOf(SmallTable(), 0, 3), {1, 2, 3}));
  // It held the first two records.
  ShardBegin second = BeginOf(SmallTable(), 0, 9);
  second.index = second.version = 2;
  AddFile(folder, File(3), FileOf(File(3), second, {30, 40}));
  const auto recording = Recording::Open(folder);
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_THAT(StepsOf(recording->shards()[0]), ElementsAre(1, 2, 30, 40));
  EXPECT_EQ(recording->shards()[0].updates[3].version, 4u);
}

TEST(Recording, SaysWhatIsMissing) {
  MemoryFolder folder;
  ShardBegin second = BeginOf(SmallTable(0, 2), 0, 9);
  second.index = second.version = 5;
  AddFile(folder, File(2), FileOf(File(2), BeginOf(SmallTable(0, 2), 0, 3), {1, 2, 3}));
  AddFile(folder, File(3), FileOf(File(3), second, {30}));
  proto::Table loaded = SmallTable(1, 2);
  loaded.mutable_shards(0)->set_origin("snapshot-000017-e42");
  ShardBegin third = BeginOf(loaded);
  third.index = third.version = 100;
  AddFile(folder, File(4), FileOf(File(4), third, {101}));
  AddFile(folder, File(5, 1), FileOf(File(5, 1), BeginOf(SmallTable(0, 2, 50)), {1}));
  // Its records begin with the first.
  proto::Table restored = SmallTable(2, 3);
  restored.mutable_origin()->set_folder("snapshot-000018-e50");
  AddFile(folder, File(6), FileOf(File(6), BeginOf(restored), {1, 2}));
  const auto recording = Recording::Open(folder);
  ASSERT_TRUE(recording.ok()) << recording.status();
  ASSERT_EQ(recording->shards().size(), 3u);
  EXPECT_THAT(StepsOf(recording->shards()[0]), ElementsAre(1, 2, 3));
  // It continues the snapshot's record.
  EXPECT_EQ(recording->shards()[1].begin, 100u);
  EXPECT_THAT(StepsOf(recording->shards()[1]), ElementsAre(101));
  EXPECT_EQ(recording->shards()[2].begin, 0u);
  EXPECT_THAT(StepsOf(recording->shards()[2]), ElementsAre(1, 2));
  EXPECT_THAT(recording->notes(),
              ElementsAre(HasSubstr("recording-5-1-00000.cvr is missing"),
                          HasSubstr("shard 0: records 4 to 5 were not recorded")));
}

TEST(Recording, SaysThatALoopWasKilled) {
  MemoryFolder folder;
  const std::string whole = RecordingBuilder(File(2))
                                .Add(BeginOf(SmallTable()))
                                .Add(UpdateOf(1, 1), {1, 2, 3, 4})
                                .EndBlock()
                                .Add(UpdateOf(1, 2), {1, 2, 3, 4})
                                .EndBlock()
                                .bytes();
  folder.AddFile(RecordingFileName(File(2)), whole.substr(0, whole.size() - 1));
  const auto recording = Recording::Open(folder);
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_THAT(StepsOf(recording->shards()[0]), ElementsAre(1));
  EXPECT_THAT(recording->notes(), ElementsAre(HasSubstr("ends after block 1, at offset")));
}

// What Open says of a file with these entries after the beginning of a stream.
std::string RefusalOf(const std::vector<RecordingEntry>& entries) {
  MemoryFolder folder;
  RecordingBuilder file(File(2));
  file.Add(BeginOf(SmallTable())).EndBlock();
  for (const RecordingEntry& entry : entries) file.Add(entry);
  AddFile(folder, File(2), file.EndBlock());
  return std::string(Recording::Open(folder).status().message());
}

TEST(Recording, RefusesEntriesThatNoServerWrites) {
  AppliedRecord no_samples = UpdateOf(1, 1);
  no_samples.pushes[0].samples = 0;
  AppliedRecord small_gradient = UpdateOf(1, 1);
  small_gradient.payload = {.format = WireFormat::kFloat32, .bytes = 0, .checksum = 0};
  AppliedRecord no_group = UpdateOf(1, 1);
  no_group.pushes[0].group = uint64_t{1} << 32;
  proto::Table no_elements = SmallTable();
  no_elements.mutable_shards(0)->set_element_count(0);
  EXPECT_THAT(RefusalOf({UpdateOf(1, 1, 1)}), HasSubstr("recording-2-1-00000.cvr, offset "));
  EXPECT_THAT(RefusalOf({UpdateOf(1, 1, 1)}), HasSubstr("stream 1 has not begun"));
  EXPECT_THAT(RefusalOf({BeginOf(SmallTable(), 2)}), HasSubstr("out of order"));
  EXPECT_THAT(RefusalOf({BeginOf(no_elements, 1)}), HasSubstr("no server makes"));
  EXPECT_THAT(RefusalOf({BeginOf(SmallTable(), 1)}), HasSubstr("two heads in epoch 3"));
  EXPECT_THAT(RefusalOf({ContentDigest{}}), HasSubstr("before its first record"));
  EXPECT_THAT(RefusalOf({no_samples}), HasSubstr("without samples"));
  EXPECT_THAT(RefusalOf({no_group}), HasSubstr("no server takes"));
  EXPECT_THAT(RefusalOf({small_gradient}), HasSubstr("0 bytes for 4 elements"));
  EXPECT_THAT(RefusalOf({RecordingEnd{}, RecordingEnd{}}), HasSubstr("follows the end"));
}

TEST(Recording, RefusesInitialStatesThatNoServerWrites) {
  AppliedRecord initial;
  initial.is_initial_values = true;
  initial.initial_state = RecordedState{.updates = kInitialUpdatesMax};
  AppliedRecord updates = initial;
  updates.initial_state->updates += 1;
  AppliedRecord samples = initial;
  samples.initial_state->samples = kInitialSamplesMax + 1;
  AppliedRecord in_int8 = initial;
  in_int8.payload = {.format = WireFormat::kInt8Block, .bytes = 0, .checksum = 0};
  EXPECT_THAT(RefusalOf({initial}), "");
  EXPECT_THAT(RefusalOf({updates}), HasSubstr("a state that no server takes"));
  EXPECT_THAT(RefusalOf({samples}), HasSubstr("a state that no server takes"));
  EXPECT_THAT(RefusalOf({in_int8}), HasSubstr("another format than float32"));

  const auto with_elements = [&](size_t elements) {
    MemoryFolder folder;
    RecordingBuilder file(File(2));
    file.Add(BeginOf(SmallTable())).Add(initial, std::vector<float>(elements)).EndBlock();
    AddFile(folder, File(2), file);
    return std::string(Recording::Open(folder).status().message());
  };
  EXPECT_EQ(with_elements(4 * kFramesMax), "");
  EXPECT_THAT(with_elements(0), HasSubstr("0 bytes for 4 elements"));
  EXPECT_THAT(with_elements(11), HasSubstr("44 bytes for 4 elements"));
  EXPECT_THAT(with_elements(4 * (kFramesMax + 1)), HasSubstr("80 bytes for 4 elements"));
}

TEST(Recording, RefusesAnEmptyFolderAndARenamedFile) {
  MemoryFolder folder;
  EXPECT_EQ(Recording::Open(folder).status().code(), absl::StatusCode::kNotFound);
  AddFile(folder, File(3), FileOf(File(2), BeginOf(SmallTable()), {1}));
  EXPECT_THAT(std::string(Recording::Open(folder).status().message()),
              HasSubstr("it is recording-2-1-00000.cvr"));
}

}  // namespace
}  // namespace covey
