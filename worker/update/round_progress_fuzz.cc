// SPDX-License-Identifier: Apache-2.0
// The progress of rounds, from another member of the group.
#include "worker/update/round_progress.h"

#include <string>

#include "common/base/check.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {
namespace {

constexpr size_t kTables = 2;

}  // namespace

std::vector<std::string> FuzzSeeds() {
  const worker::TableRound round{
      .samples = 64, .all_samples = 4096, .pushed = Step(30), .pushed_samples = 1};
  std::vector<std::string> seeds;
  for (const worker::RoundProgress& progress :
       {worker::RoundProgress{.learned = Step(31), .tables = {round, {}}},
        worker::RoundProgress{.learned = Step(), .tables = {{}, {}}}}) {
    seeds.emplace_back(FuzzText(worker::EncodeRoundProgress(progress).bytes()));
  }
  return seeds;
}

bool FuzzOne(std::span<const uint8_t> input) {
  const auto progress = worker::DecodeRoundProgress(Buffer::CopyOf(input), kTables);
  if (!progress.ok()) return false;
  const auto again = worker::DecodeRoundProgress(worker::EncodeRoundProgress(*progress), kTables);
  COVEY_CHECK(again.ok() && *again == *progress);
  return true;
}

}  // namespace covey
