// SPDX-License-Identifier: Apache-2.0
#include "server/sparse/sparse_shard.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/planted_bug.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/table/key_slots.h"
#include "server/sparse/sparse_cut.h"
#include "server/table/sample_count.h"

namespace covey::server {
namespace {

// About how many rows PartDigest reads.
constexpr size_t kRowsPerPart = 2048;

RowValues::Rounding RoundingOf(OptimizerKind kind) {
  return kind == OptimizerKind::kFtrl ? RowValues::Rounding::kNearest
                                      : RowValues::Rounding::kAtRandom;
}

}  // namespace

absl::StatusOr<std::shared_ptr<SparseShard>> SparseShard::Create(const SparseShardConfig& config,
                                                                 RowMemory& memory) {
  if (config.slot_count == 0 || config.slot_count > kKeySlots ||
      config.first_slot > kKeySlots - config.slot_count) {
    return absl::InvalidArgumentError(
        absl::StrCat("open shard: ", config.slot_count, " slots from ", config.first_slot,
                     " on; choose at least 1, and none beyond the ", kKeySlots, " of a table"));
  }
  if (config.width == 0 || config.width > kRowWidthMax) {
    return absl::InvalidArgumentError(absl::StrCat("open shard: rows of ", config.width,
                                                   " elements; choose 1 to ", kRowWidthMax));
  }
  if (config.rows_max == 0 || config.rows_max > kRowsPerShardMax) {
    return absl::InvalidArgumentError(absl::StrCat("open shard: at most ", config.rows_max,
                                                   " rows; choose 1 to ", kRowsPerShardMax));
  }
  if (HasBlocks(config.type)) {
    return absl::InvalidArgumentError(absl::StrCat("open shard: rows of ",
                                                   WireFormatName(config.type),
                                                   "; choose float32, float16 or bfloat16"));
  }
  COVEY_RETURN_IF_ERROR(config.initializer.Validate());
  COVEY_ASSIGN_OR_RETURN(auto schedule, LearningRateSchedule::Create(config.learning_rate));
  COVEY_ASSIGN_OR_RETURN(auto optimizer, RowOptimizer::Create(config.optimizer, config.width));
  return std::shared_ptr<SparseShard>(
      new SparseShard(config, schedule, std::move(optimizer), memory));
}

std::shared_ptr<SparseShard> SparseShard::Empty() const { return Create(config_, memory_).value(); }

SparseShard::SparseShard(const SparseShardConfig& config, LearningRateSchedule schedule,
                         std::unique_ptr<RowOptimizer> optimizer, RowMemory& memory)
    : config_(config),
      memory_(memory),
      schedule_(schedule),
      optimizer_(std::move(optimizer)),
      layout_(optimizer_->layout(config.type)),
      first_place_(config.first_slot << 48),
      shift_(std::countl_zero((config.slot_count << 48) - 1)),
      values_(memory, {.type = config.type,
                       .width = config.width,
                       .rounding = RoundingOf(config.optimizer.kind),
                       .seed = config.initializer.seed}),
      updates_(ProcessRowMemory(), 1),
      pending_updates_(ProcessRowMemory(), 1) {
  for (size_t slot = 0; slot < optimizer_->slots(); ++slot) {
    slots_.emplace_back(memory, optimizer_->slot_width(slot));
  }
}

std::unique_ptr<SparseCut> SparseShard::Cut() {
  return absl::WrapUnique(new SparseCut(shared_from_this()));
}

void SparseShard::SaveForCuts(const IndexEntry& entry) {
  for (SparseCut* const cut : cuts_) cut->Save(entry);
}

bool SparseShard::Holds(uint64_t key) const {
  return SlotOfKey(key) - config_.first_slot < config_.slot_count;
}

uint64_t SparseShard::PlaceOf(uint64_t key) const {
  return (MixBits(key) - first_place_) << shift_;
}

uint64_t SparseShard::KeyOf(uint64_t place) const { return UnmixBits(MixedAt(place)); }

SparseRow SparseShard::RowAt(const IndexEntry& entry) const {
  if (IsPending(entry)) {
    return {.key = KeyOf(entry.place),
            .stamp = entry.stamp,
            .updates = *pending_updates_.Row(NumberOf(entry))};
  }
  SparseRow row{.key = KeyOf(entry.place),
                .stamp = entry.stamp,
                .updates = *updates_.Row(entry.row),
                .values = values_.Row(entry.row)};
  for (size_t slot = 0; slot < slots_.size(); ++slot) row.slots[slot] = slots_[slot].Row(entry.row);
  return row;
}

size_t SparseShard::bytes() const {
  size_t total = index_.bytes() + values_.bytes() + updates_.bytes();
  for (const RowSlab<float>& slot : slots_) total += slot.bytes();
  return total + pending_updates_.bytes() + numbers_.bytes() + pending_.bytes() + removed_.bytes();
}

void SparseShard::Occupy(uint32_t row) {
  if (!numbers_.Take()) return;
  const size_t addressable = size_t{row} + 1;
  values_.Grow(addressable);
  updates_.Grow(addressable);
  for (RowSlab<float>& slot : slots_) slot.Grow(addressable);
}

void SparseShard::OccupyPending(uint32_t number) {
  if (pending_.Take()) pending_updates_.Grow(size_t{number} + 1);
}

void SparseShard::BeginRow(uint64_t key, uint32_t row) {
  Occupy(row);
  Initialize(config_.initializer, key * config_.width, values_.NewValues(row));
  values_.Store(row);
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    std::fill_n(slots_[slot].Row(row), slot_width(slot), 0.0f);
  }
  *updates_.Row(row) = 0;
}

absl::Status SparseShard::CheckUpdate(size_t keys, size_t gradient_elements,
                                      uint64_t samples) const {
  if (gradient_elements == keys * config_.width) return CheckSamples(samples, samples_);
  return absl::InvalidArgumentError(absl::StrCat("apply: the gradient has ", gradient_elements,
                                                 " elements for ", keys, " rows of ", config_.width,
                                                 "; push ", keys * config_.width));
}

absl::Status SparseShard::CheckKeys(std::span<const uint64_t> keys) const {
  for (size_t i = 1; i < keys.size(); ++i) {
    if (keys[i] <= keys[i - 1]) {
      return absl::InvalidArgumentError(absl::StrCat("apply: key ", keys[i], " follows key ",
                                                     keys[i - 1],
                                                     "; push keys ascending, each once"));
    }
  }
  return CheckHolds(keys);
}

absl::Status SparseShard::CheckHolds(std::span<const uint64_t> keys) const {
  const auto stray =
      std::find_if(keys.begin(), keys.end(), [this](uint64_t key) { return !Holds(key); });
  if (stray == keys.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "key ", *stray, " lies in slot ", SlotOfKey(*stray), ", the shard holds ", config_.slot_count,
      " slots from ", config_.first_slot, " on; route it by the newest view"));
}

absl::StatusOr<uint64_t> SparseShard::RestoreRows(const RowPiece& piece, Restored restored) {
  COVEY_ASSIGN_OR_RETURN(const RowPieceReader reader, RowPieceReader::Open(piece, layout()));
  uint64_t taken = 0;
  for (size_t i = 0; i < piece.rows; ++i) {
    const SparseRow row = reader.Row(i);
    if (!Holds(row.key)) continue;
    COVEY_RETURN_IF_ERROR(RestoreRow(row, restored));
    ++taken;
  }
  return taken;
}

absl::StatusOr<IndexEntry*> SparseShard::RestoreEntry(uint64_t key, uint32_t number) {
  IndexEntry& entry = index_.FindOrInsert(PlaceOf(key), number);
  if (entry.row == number) return &entry;
  return absl::FailedPreconditionError(absl::StrCat("restore: key ", key, " is there twice"));
}

absl::Status SparseShard::RestoreRow(const SparseRow& row, Restored restored) {
  const uint32_t number = numbers_.Next();
  COVEY_ASSIGN_OR_RETURN(IndexEntry* const entry, RestoreEntry(row.key, number));
  const bool with_state = restored == Restored::kState;
  entry->stamp = with_state ? row.stamp : 0;
  Occupy(number);
  std::copy_n(row.values, layout_.stored_value_bytes(), values_.Row(number));
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    float* const to = slots_[slot].Row(number);
    if (with_state) {
      std::copy_n(row.slots[slot], slot_width(slot), to);
    } else {
      std::fill_n(to, slot_width(slot), 0.0f);
    }
  }
  *updates_.Row(number) = with_state ? row.updates : 0;
  return absl::OkStatus();
}

void SparseShard::RestoreCounts(uint64_t version, uint64_t samples) {
  version_ = version;
  samples_ = samples;
  removed_.Restart(version);
}

uint64_t SparseShard::DigestOfEntry(const IndexEntry& entry, const RowLayout& rows) const {
  if (!IsPending(entry)) return DigestOf(RowAt(entry), rows);
  return Planted(PlantedBug::kAdmissionForgets) ? 0 : DigestOf(RowAt(entry), kPendingLayout);
}

uint64_t SparseShard::Digest() const {
  const RowLayout rows = layout();
  uint64_t sum = 0;
  index_.ForEach([&](const IndexEntry& entry) { sum += DigestOfEntry(entry, rows); });
  return sum;
}

uint64_t SparseShard::PartDigest(uint64_t number) const {
  const RowLayout layout_of_rows = layout();
  // Parts are equal ranges of places, a power of two of them.
  const int bits = std::bit_width(entries() / kRowsPerPart);
  const uint64_t first = bits == 0 ? 0 : number << (64 - bits);
  const uint64_t last = bits == 0 ? ~uint64_t{0} : first + (~uint64_t{0} >> bits);
  uint64_t sum = 0;
  index_.VisitFrom(first, [&](const IndexEntry& entry) {
    if (entry.place > last) return false;
    sum += DigestOfEntry(entry, layout_of_rows);
    return true;
  });
  return sum;
}

}  // namespace covey::server
