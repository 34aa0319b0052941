// SPDX-License-Identifier: Apache-2.0
#include "server/replication/shard_content.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/planted_bug.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/net/frame_checksum.h"

namespace covey::server {
namespace {

// A part of the record is closed once it has this many bytes; one more producer adds at most 80
// KiB.
constexpr size_t kRecordPartBytes = 1 << 20;
static_assert(kRecordPartBytes + kDedupWindow * 20 < kReplicaPieceBytesMax);

}  // namespace

absl::StatusOr<std::unique_ptr<ShardContent>> ShardContent::Create(absl::Time now,
                                                                   const DenseShardConfig& config,
                                                                   TableMemory& memory) {
  COVEY_ASSIGN_OR_RETURN(std::unique_ptr<DenseShard> table, DenseShard::Create(config, memory));
  return absl::WrapUnique(new ShardContent(std::move(table), now));
}

absl::Status ShardContent::Apply(absl::Time now, const ShardRecord& record,
                                 std::span<const float> gradient) {
  const bool is_update = record.version != Version();
  const bool in_order = record.index == index_ + 1 &&
                        (!is_update || record.version == Version(version().value() + 1));
  if (!in_order && !Planted(PlantedBug::kSkipMissingRecord)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "record ", record.index, " makes version ", record.version.value(), "; here, record ",
        index_, " was the last and the version is ", version().value()));
  }
  if (is_update) {
    COVEY_RETURN_IF_ERROR(table_->Apply(gradient, record.samples, record.adjustment));
    last_update_ = now;
  }
  index_ = record.index;
  last_cut_ = std::max(last_cut_, record.cut);
  for (const RecordedPush& push : record.pushes) {
    if (push.key.sequence == 0) {
      push_history_.Forget(push.key.producer);
      continue;
    }
    if (push.discarded) {
      ++discarded_;
      push_history_.NoteDiscarded(push.key);
    } else {
      push_history_.Note(push.key, record.version);
    }
    if (push.group != GroupId()) clocks_.Advance(push.group, push.step);
  }
  return absl::OkStatus();
}

uint64_t ShardContent::Digest() const {
  uint64_t digest = MixBits(index_);
  const auto take_in = [&digest](uint64_t value) { digest = MixBits(digest ^ value); };
  take_in(samples());
  take_in(discarded_);
  take_in(last_cut_);
  proto::ShardState state;
  clocks_.Describe(version(), state);
  // Otherwise the digest would reveal the planted bug.
  if (!Planted(PlantedBug::kDropClocksOnMove)) take_in(state.clock_digest());
  take_in(push_history_.Digest());
  take_in(ValuesChecksum());
  for (size_t slot = 0; slot < slots(); ++slot) take_in(Crc32c(Slot(slot).bytes()));
  return digest;
}

std::vector<proto::ReplicaRecord> ShardContent::DescribeRecord() const {
  std::vector<proto::ReplicaRecord> parts(1);
  size_t bytes = 0;
  push_history_.Describe([&](proto::ProducerRecord record) {
    if (bytes >= kRecordPartBytes) {
      parts.emplace_back();
      bytes = 0;
    }
    bytes += record.ByteSizeLong();
    *parts.back().add_producers() = std::move(record);
  });
  proto::ShardState state;
  clocks_.Describe(version(), state);
  proto::ReplicaRecord& last = parts.back();
  if (!Planted(PlantedBug::kDropClocksOnMove)) *last.mutable_clocks() = state.clocks();
  last.set_discarded(discarded_);
  last.set_last_cut(last_cut_);
  last.set_digest(Digest());
  return parts;
}

absl::Status ShardContent::Restore(absl::Time now, uint64_t index, uint64_t version,
                                   uint64_t samples, Buffer values, std::vector<Buffer> slots,
                                   const std::vector<proto::ReplicaRecord>& records) {
  table_->Restore(std::move(values), std::move(slots), version, samples);
  checksum_.reset();
  index_ = index;
  push_history_ = PushHistory();
  clocks_ = ClockVector();
  uint64_t digest = 0;
  for (const proto::ReplicaRecord& record : records) {
    for (const proto::ProducerRecord& producer : record.producers()) {
      COVEY_RETURN_IF_ERROR(push_history_.Restore(producer));
    }
    for (const proto::GroupClock& clock : record.clocks()) {
      clocks_.Advance(GroupId(clock.group()), Step(clock.step()));
    }
    discarded_ = record.discarded();
    last_cut_ = record.last_cut();
    digest = record.digest();
  }
  last_update_ = now;
  if (digest == Digest()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the content as of record ", index, " does not have its digest"));
}

uint64_t ShardContent::bytes() const { return value_bytes() * (1 + slots()); }

uint32_t ShardContent::ValuesChecksum() const {
  if (!checksum_ || checksum_->first != version().value()) {
    checksum_ = {version().value(), FrameChecksum(Values())};
  }
  return checksum_->second;
}

}  // namespace covey::server
