// SPDX-License-Identifier: Apache-2.0
#include "server/replication/shard_content.h"

#include <algorithm>
#include <array>
#include <new>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/planted_bug.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/net/frame_checksum.h"

namespace covey::server {
namespace {

// As DenseShard::Create; memory that the system does not give is a status.
absl::StatusOr<std::unique_ptr<DenseShard>> CreateDense(const DenseShardConfig& config,
                                                        TableMemory& memory) {
  try {
    return DenseShard::Create(config, memory);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the system has no memory for arrays of ", config.element_count * sizeof(float),
        " bytes; drop tables, start more servers, or give this one more memory"));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShardContent>> ShardContent::Create(absl::Time now,
                                                                   const Config& config,
                                                                   TableMemory& memory) {
  if (const auto* const sparse = std::get_if<SparseShardConfig>(&config)) {
    COVEY_ASSIGN_OR_RETURN(std::shared_ptr<SparseShard> table,
                           SparseShard::Create(*sparse, memory.rows()));
    return absl::WrapUnique(new ShardContent(nullptr, std::move(table), now));
  }
  COVEY_ASSIGN_OR_RETURN(std::unique_ptr<DenseShard> table,
                         CreateDense(std::get<DenseShardConfig>(config), memory));
  return absl::WrapUnique(new ShardContent(std::move(table), nullptr, now));
}

absl::StatusOr<uint64_t> ShardContent::MemoryBytesOf(const Config& config) {
  const auto* const dense = std::get_if<DenseShardConfig>(&config);
  if (dense == nullptr) return 0;
  COVEY_ASSIGN_OR_RETURN(const auto optimizer, MakeOptimizer(dense->optimizer));
  const auto arrays = static_cast<uint64_t>(1 + optimizer->state_slots());
  return arrays * dense->element_count * sizeof(float);
}

absl::Status ShardContent::Apply(absl::Time now, const ShardRecord& record,
                                 const Gradient& gradient) {
  const bool is_update = record.version != Version();
  const bool in_order = record.index == index_ + 1 &&
                        (!is_update || record.version == Version(version().value() + 1)) &&
                        (!record.initial_values || !has_pushes());
  if (!in_order && !Planted(PlantedBug::kSkipMissingRecord)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "record ", record.index, " makes version ", record.version.value(), "; here, record ",
        index_, " was the last and the version is ", version().value()));
  }
  if (record.initial_state && (sparse_ || record.initial_state->slots.size() != slots())) {
    return absl::FailedPreconditionError(absl::StrCat(
        "record ", record.index, " gives the optimizer ", record.initial_state->slots.size(),
        " arrays of state, which are not those that it keeps"));
  }
  if (is_update) {
    COVEY_RETURN_IF_ERROR(ApplyUpdate(record, gradient));
    asynchrony_ = record.asynchrony;
    last_update_ = now;
  }
  if (record.initial_values) TakeInitialValues(record, gradient.elements);
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
      push_history_.Note(push.key, version());
    }
    if (push.norm != 0) {
      push_history_.NoteNorm(push.key.producer, push.norm, push.is_beyond_gate);
    }
    if (push.group != GroupId()) clocks_.Advance(push.group, push.step);
  }
  return absl::OkStatus();
}

absl::Status ShardContent::ApplyUpdate(const ShardRecord& record, const Gradient& gradient) {
  if (dense_ && !record.functions.empty()) return dense_->Apply(record.functions);
  if (dense_) return dense_->Apply(gradient.elements, record.samples, record.adjustment);
  return ApplyRows(record, gradient);
}

absl::Status ShardContent::ApplyRows(const ShardRecord& record, const Gradient& gradient) {
  try {
    COVEY_ASSIGN_OR_RETURN(
        rows_refused_,
        sparse_->Apply(gradient.keys, gradient.elements, record.samples,
                       record.adjustment.rate_factor, record.evictions, gradient.places));
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the system has no memory for new rows beside ", sparse_->rows(),
                     "; drop tables, start more servers, or allow less with --table-bytes-max"));
  }
}

ContentCut ShardContent::CutRest() const {
  return {.index = index_,
          .version = version(),
          .samples = samples(),
          .discarded = discarded_,
          .last_cut = last_cut_,
          .asynchrony = asynchrony_,
          .values = {},
          .slots = {},
          .row_totals = sparse_ ? sparse_->totals() : SparseShard::Totals(),
          .clocks = clocks_,
          .push_history = push_history_};
}

ContentCut ShardContent::Cut() const {
  ContentCut cut = CutRest();
  if (sparse_) {
    cut.rows = sparse_->Cut();
    return cut;
  }
  cut.values = Values();
  for (size_t slot = 0; slot < slots(); ++slot) cut.slots.push_back(Slot(slot));
  return cut;
}

uint64_t ShardContent::Digest() const {
  if (sparse_) return CutRest().Digest(std::array{sparse_->Digest()});
  const ContentCut cut = Cut();
  std::vector<uint64_t> checksums = {ValuesChecksum()};
  for (const Buffer& slot : cut.slots) checksums.push_back(Crc32c(slot.bytes()));
  return cut.Digest(checksums);
}

uint64_t ShardContent::RecordDigest() const {
  return sparse_ ? CutRest().Digest(std::array{sparse_->PartDigest(MixBits(index_))}) : Digest();
}

absl::Status ShardContent::Restore(absl::Time now, uint64_t index, uint64_t version,
                                   uint64_t samples, Buffer values, std::vector<Buffer> slots,
                                   const std::vector<proto::ReplicaRecord>& records) {
  Begin(std::move(values), std::move(slots), version, samples);
  return RestoreRest(now, index, version, samples, records);
}

absl::Status ShardContent::RestoreRest(absl::Time now, uint64_t index, uint64_t version,
                                       uint64_t samples,
                                       const std::vector<proto::ReplicaRecord>& records) {
  if (sparse_) sparse_->RestoreCounts(version, samples);
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
    COVEY_ASSIGN_OR_RETURN(asynchrony_, AsynchronyOf(record.asynchrony()));
    if (sparse_) {
      sparse_->RestoreTotals({.evicted = record.rows_evicted(), .refused = record.rows_refused()});
    }
    digest = record.digest();
  }
  last_update_ = now;
  if (digest == Digest()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the content as of record ", index, " does not have its digest"));
}

void ShardContent::TakeInitialValues(const ShardRecord& record, std::span<const float> values) {
  const auto array_of = [this](std::span<const float> from) {
    Buffer array = NewArray();
    std::copy(from.begin(), from.end(), array.MutableAs<float>().begin());
    return array;
  };
  if (!record.initial_state && Planted(PlantedBug::kKeepEarlierState)) {
    std::vector<Buffer> earlier;
    for (size_t slot = 0; slot < slots(); ++slot) earlier.push_back(Slot(slot));
    return Begin(array_of(values), std::move(earlier), version().value(), samples());
  }
  // Those of an earlier call go, with its values.
  std::vector<Buffer> new_slots;
  for (size_t slot = 0; slot < slots(); ++slot) {
    if (record.initial_state) {
      new_slots.push_back(array_of(record.initial_state->slots[slot].frame.As<float>()));
      continue;
    }
    const std::span<float> zeros = new_slots.emplace_back(NewArray()).MutableAs<float>();
    std::fill(zeros.begin(), zeros.end(), 0.0f);
  }
  Begin(array_of(values), std::move(new_slots),
        record.initial_state ? record.initial_state->updates : 0,
        record.initial_state ? record.initial_state->samples : 0);
}

void ShardContent::Begin(Buffer values, std::vector<Buffer> slots, uint64_t version,
                         uint64_t samples) {
  dense_->Restore(std::move(values), std::move(slots), version, samples);
  checksum_.reset();
}

uint64_t ShardContent::bytes() const {
  if (sparse_) return sparse_->rows() * sparse_->layout().row_bytes();
  return value_bytes() * (1 + slots());
}

uint32_t ShardContent::ValuesChecksum() const {
  if (!checksum_ || checksum_->first != version().value()) {
    checksum_ = {version().value(), FrameChecksum(Values())};
  }
  return checksum_->second;
}

}  // namespace covey::server
