// SPDX-License-Identifier: Apache-2.0
// The entries of a block of a recording.
#include "common/recording/recording_entry.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"
#include "common/recording/testing/recording_builder.h"

namespace covey {

std::vector<std::string> FuzzSeeds() {
  AppliedRecord rich = UpdateOf(2, 70'000);
  rich.pushes.push_back(UpdateOf(2, 1).pushes[0]);
  rich.pushes[0].group = 0;
  rich.rate_factor = 0.5;
  rich.momentum = 0.9;
  AppliedRecord by_functions = UpdateOf(200, 3);
  by_functions.functions.assign(
      3, {.kind = VectorFunction::Kind::kAxpy, .target = 200, .source = 1, .scalar = 0.25});
  const std::vector<std::vector<RecordingEntry>> all = {
      {BeginOf(SmallTable()), UpdateOf(1, 1), RecordingEnd{}},
      {BeginOf(SmallTable()), rich, ContentDigest{.stream = 0, .digest = 0x123456789abcdef}},
      {BeginOf(SmallTable()), by_functions},
  };
  std::vector<std::string> seeds;
  for (const std::vector<RecordingEntry>& entries : all) {
    std::vector<uint8_t> bytes;
    for (const RecordingEntry& entry : entries) EncodeEntry(entry, bytes);
    seeds.emplace_back(FuzzText(bytes));
  }
  return seeds;
}

bool FuzzOne(std::span<const uint8_t> input) {
  const auto entries = DecodeEntries(input);
  if (!entries.ok()) {
    COVEY_CHECK(entries.status().code() == absl::StatusCode::kInvalidArgument);
    return false;
  }
  // Entries that are accepted have one form: written again, they are the same bytes.
  std::vector<uint8_t> again;
  for (const RecordingEntry& entry : *entries) EncodeEntry(entry, again);
  COVEY_CHECK(std::equal(again.begin(), again.end(), input.begin(), input.end()));
  return true;
}

}  // namespace covey
