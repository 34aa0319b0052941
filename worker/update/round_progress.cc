// SPDX-License-Identifier: Apache-2.0
#include "worker/update/round_progress.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "proto/group.pb.h"

namespace covey::worker {
namespace {

constexpr size_t kHeadBytesMax = 16;

absl::Status BeyondLimit(absl::string_view what, uint64_t number) {
  return absl::InvalidArgumentError(
      absl::StrCat("the progress of rounds with ", what, " ", number));
}

absl::StatusOr<TableRound> Read(const proto::TableRound& from) {
  for (const uint64_t samples : {from.samples(), from.all_samples(), from.pushed_samples()}) {
    if (samples > kShardSamplesMax) return BeyondLimit("samples:", samples);
  }
  if (from.pushed_step() >= kGroupStepsMax) return BeyondLimit("step", from.pushed_step());
  return TableRound{.samples = from.samples(),
                    .all_samples = from.all_samples(),
                    .pushed = Step(from.pushed_step()),
                    .pushed_samples = from.pushed_samples()};
}

}  // namespace

Buffer EncodeRoundProgress(const RoundProgress& progress) {
  proto::RoundProgress words;
  words.set_learned_step(progress.learned.value());
  for (const TableRound& table : progress.tables) {
    proto::TableRound& told = *words.add_tables();
    told.set_samples(table.samples);
    told.set_all_samples(table.all_samples);
    told.set_pushed_step(table.pushed.value());
    told.set_pushed_samples(table.pushed_samples);
  }
  Buffer bytes = Buffer::Allocate(words.ByteSizeLong());
  words.SerializeWithCachedSizesToArray(bytes.MutableData());
  return bytes;
}

absl::StatusOr<RoundProgress> DecodeRoundProgress(const Buffer& bytes, size_t tables) {
  if (bytes.size() > kHeadBytesMax + kTableRoundBytesMax * tables) {
    return BeyondLimit("bytes:", bytes.size());
  }
  proto::RoundProgress words;
  if (!words.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError("the progress of rounds in bytes that are none");
  }
  if (static_cast<size_t>(words.tables_size()) != tables) {
    return BeyondLimit("tables:", static_cast<uint64_t>(words.tables_size()));
  }
  if (words.learned_step() >= kGroupStepsMax) return BeyondLimit("step", words.learned_step());
  RoundProgress progress{.learned = Step(words.learned_step())};
  for (const proto::TableRound& told : words.tables()) {
    COVEY_ASSIGN_OR_RETURN(const TableRound table, Read(told));
    progress.tables.push_back(table);
  }
  return progress;
}

}  // namespace covey::worker
