// SPDX-License-Identifier: Apache-2.0
// Valid recordings with random changes. A reader must not crash, and entries that it accepts must
// have one meaning: written again, they are the same bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/recording/recording.h"
#include "common/recording/recording_file.h"
#include "common/recording/testing/recording_builder.h"
#include "common/store/testing/memory_folder.h"

namespace covey {
namespace {

constexpr int kMutations = 20'000;

std::vector<uint8_t> ValidEntries(Random& random) {
  std::vector<uint8_t> bytes;
  EncodeEntry(BeginOf(SmallTable()), bytes);
  for (uint64_t left = 1 + random.Below(5); left > 0; --left) {
    AppliedRecord record = UpdateOf(random.Below(300), 1 + random.Below(100'000));
    if (random.Chance(0.3)) record.pushes.push_back(UpdateOf(2, 1).pushes[0]);
    if (random.Chance(0.3)) record.pushes[0].group = 0;
    if (random.Chance(0.3)) record.rate_factor = random.Uniform();
    if (random.Chance(0.3)) record.momentum = random.Uniform();
    if (random.Chance(0.2)) {
      record.functions.assign(1 + random.Below(3), {.kind = VectorFunction::Kind::kAxpy,
                                                    .target = 200,
                                                    .source = 1,
                                                    .scalar = random.Uniform()});
    }
    EncodeEntry(record, bytes);
  }
  EncodeEntry(ContentDigest{.stream = 0, .digest = random.Next()}, bytes);
  if (random.Chance(0.5)) EncodeEntry(RecordingEnd{}, bytes);
  return bytes;
}

// `bytes` with one to four changes.
template <typename Bytes>
Bytes Mutated(Bytes bytes, Random& random) {
  using Byte = typename Bytes::value_type;
  for (uint64_t left = 1 + random.Below(4); left > 0 && !bytes.empty(); --left) {
    const auto place = bytes.begin() + static_cast<ptrdiff_t>(random.Below(bytes.size()));
    const auto length =
        std::min<ptrdiff_t>(1 + static_cast<ptrdiff_t>(random.Below(12)), bytes.end() - place);
    switch (random.Below(4)) {
      case 0:
        *place = static_cast<Byte>(random.Below(256));
        break;
      case 1:
        *place = static_cast<Byte>(*place ^ 1 << random.Below(8));
        break;
      case 2:
        bytes.erase(place, place + length);
        break;
      case 3:
        bytes.insert(place, static_cast<Byte>(random.Below(6)));
        break;
    }
  }
  return bytes;
}

TEST(MutationTest, Entries) {
  int accepted = 0;
  for (int seed = 0; seed < kMutations; ++seed) {
    Random random(seed);
    const std::vector<uint8_t> bytes = Mutated(ValidEntries(random), random);
    const auto entries = DecodeEntries(bytes);
    if (!entries.ok()) {
      ASSERT_EQ(entries.status().code(), absl::StatusCode::kInvalidArgument) << seed;
      continue;
    }
    ++accepted;
    std::vector<uint8_t> again;
    for (const RecordingEntry& entry : *entries) EncodeEntry(entry, again);
    ASSERT_EQ(again, bytes) << seed;
  }
  // Else the changes were too coarse to test more than refusals.
  EXPECT_GT(accepted, kMutations / 50);
  RecordProperty("accepted", accepted);
}

// Entries that have been changed under valid checksums: what a whole recording says is checked,
// too.
TEST(MutationTest, Recordings) {
  int accepted = 0;
  for (int seed = 0; seed < kMutations; ++seed) {
    Random random(seed);
    const Buffer block = EncodeBlock(Mutated(ValidEntries(random), random));
    std::string file = RecordingBuilder().bytes();
    file.append(block.bytes().begin(), block.bytes().end());
    if (random.Chance(0.2)) file = Mutated(file, random);
    MemoryFolder folder;
    folder.AddFile("recording-2-1-00000.cvr", file);
    const auto recording = Recording::Open(folder);
    if (!recording.ok()) {
      ASSERT_FALSE(recording.status().message().empty()) << seed;
      continue;
    }
    ++accepted;
    for (const ShardHistory& shard : recording->shards()) {
      for (size_t i = 0; i < shard.updates.size(); ++i) {
        ASSERT_EQ(shard.updates[i].index, i + 1) << seed;
        (void)recording->ReadGradient(shard.updates[i]);
      }
    }
  }
  EXPECT_GT(accepted, kMutations / 50);
  RecordProperty("accepted", accepted);
}

}  // namespace
}  // namespace covey
