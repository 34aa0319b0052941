// SPDX-License-Identifier: Apache-2.0
// Recordings of one file: the entries of a block, around which a right block and a right header are
// made, then what follows the block; or a whole file, which begins with "COVEYREC".
#include "common/recording/recording.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"
#include "common/recording/recording_file.h"
#include "common/recording/testing/recording_builder.h"
#include "common/store/testing/memory_folder.h"

namespace covey {
namespace {

std::string EntriesOf(const std::vector<RecordingEntry>& entries) {
  std::vector<uint8_t> bytes;
  for (const RecordingEntry& entry : entries) EncodeEntry(entry, bytes);
  return std::string(FuzzText(bytes));
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  const RecordingEntry begin = BeginOf(SmallTable());
  AppliedRecord momentum = UpdateOf(2, 2);
  momentum.momentum = 0.9;
  return {
      JoinFuzzParts({EntriesOf({begin, UpdateOf(2, 1), RecordingEnd{}})}),
      JoinFuzzParts({EntriesOf(
          {begin, UpdateOf(2, 1), UpdateOf(3, 1), ContentDigest{.stream = 0, .digest = 7}})}),
      RecordingBuilder().Add(begin).Add(UpdateOf(2, 1), {1, 2, 3, 4}).EndBlock().bytes(),
      RecordingBuilder()
          .Add(begin)
          .Add(UpdateOf(2, 1), {1, 2, 3, 4})
          .Add(momentum, {1, 2, 3, 5})
          .EndBlock()
          .Add(RecordingEnd{})
          .EndBlock()
          .bytes(),
  };
}

bool FuzzOne(std::span<const uint8_t> input) {
  std::string file(FuzzText(input));
  if (!absl::StartsWith(file, "COVEYREC")) {
    const Buffer block = EncodeBlock(TakeFuzzPart(input));
    file = absl::StrCat(RecordingBuilder().bytes(), FuzzText(block.bytes()), FuzzText(input));
  }
  MemoryFolder folder;
  folder.AddFile("recording-2-1-00000.cvr", file);
  const auto recording = Recording::Open(folder);
  if (!recording.ok()) {
    COVEY_CHECK(!recording.status().message().empty());
    return false;
  }
  for (const ShardHistory& shard : recording->shards()) {
    for (size_t i = 0; i < shard.updates.size(); ++i) {
      COVEY_CHECK(shard.updates[i].index == i + 1);
      (void)recording->ReadGradient(shard.updates[i]);
    }
  }
  return true;
}

}  // namespace covey
