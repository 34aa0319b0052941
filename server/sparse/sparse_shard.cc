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

// Three blocks are under way in Apply; with 64 rows each they would not fit in the L1 cache.
constexpr size_t kBlock = 32;
static_assert(kBlock <= kRowsPerUpdateMax);
// About how many rows PartDigest reads.
constexpr size_t kRowsPerPart = 2048;

void PrefetchBytes(const void* from, size_t bytes) {
  const char* const start = static_cast<const char*>(from);
  for (size_t line = 0; line < bytes; line += 64) __builtin_prefetch(start + line, 1);
}

}  // namespace

// Up to kBlock keys on their way from their lookup to the update of their rows.
struct SparseShard::Block {
  std::span<const uint64_t> keys;
  std::array<uint64_t, kBlock> places;
  std::array<uint32_t, kBlock> rows;  // 0: the shard is full, and there is no such row
};

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
      first_place_(config.first_slot << 48),
      shift_(std::countl_zero((config.slot_count << 48) - 1)),
      values_(memory, config.width),
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
  Initialize(config_.initializer, key * config_.width, {values_.Row(row), config_.width});
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    std::fill_n(slots_[slot].Row(row), slot_width(slot), 0.0f);
  }
  *updates_.Row(row) = 0;
}

absl::Status SparseShard::Check(std::span<const uint64_t> keys, std::span<const float> gradient_sum,
                                uint64_t samples) const {
  if (gradient_sum.size() != keys.size() * config_.width) {
    return absl::InvalidArgumentError(
        absl::StrCat("apply: the gradient has ", gradient_sum.size(), " elements for ", keys.size(),
                     " rows of ", config_.width, "; push ", keys.size() * config_.width));
  }
  COVEY_RETURN_IF_ERROR(CheckSamples(samples, samples_));
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

void SparseShard::FindPlaces(Block& block) const {
  for (size_t i = 0; i < block.keys.size(); ++i) {
    block.places[i] = PlaceOf(block.keys[i]);
    index_.Prefetch(block.places[i]);
  }
}

void SparseShard::FindRows(Block& block) {
  const bool takes_all = config_.admission.takes_all();
  const uint32_t stamp = static_cast<uint32_t>(version_ + 1);
  for (size_t i = 0; i < block.keys.size(); ++i) {
    const uint64_t place = block.places[i];
    const uint32_t new_row = numbers_.Next();
    IndexEntry* const entry = !takes_all ? FindOrAdmit(place, new_row)
                              : index_.size() < config_.rows_max
                                  ? &index_.FindOrInsert(place, new_row)
                                  : index_.Find(place);
    block.rows[i] = entry == nullptr ? 0 : entry->row;
    if (entry == nullptr) {
      totals_.refused += takes_all;
      continue;
    }
    const bool is_new = entry->row == new_row;
    if (!is_new) SaveForCuts(*entry);
    entry->stamp = stamp;
    if (is_new) BeginRow(block.keys[i], new_row);
    PrefetchBytes(values_.Row(block.rows[i]), config_.width * sizeof(float));
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      PrefetchBytes(slots_[slot].Row(block.rows[i]), slot_width(slot) * sizeof(float));
    }
    __builtin_prefetch(updates_.Row(block.rows[i]), 1);
  }
}

void SparseShard::UpdateRows(const UpdateContext& context, const float* gradient_sum,
                             const Block& block) {
  std::array<RowUpdate, kBlock> updates;
  std::array<uint32_t, kBlock> counts;
  size_t size = 0;
  for (size_t i = 0; i < block.keys.size(); ++i) {
    const uint32_t row = block.rows[i];
    if (row == 0) continue;
    updates[size].gradient_sum = gradient_sum + i * config_.width;
    updates[size].values = values_.Row(row);
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      updates[size].slots[slot] = slots_[slot].Row(row);
    }
    uint32_t& count = *updates_.Row(row);
    // Saturates, so that Adam's correction does not begin again after 4 billion updates.
    count += count != std::numeric_limits<uint32_t>::max();
    counts[size++] = count;
  }
  optimizer_->Apply(context, std::span(updates).first(size), std::span(counts).first(size));
}

absl::StatusOr<uint64_t> SparseShard::Apply(std::span<const uint64_t> keys,
                                            std::span<const float> gradient_sum, uint64_t samples,
                                            double rate_factor,
                                            std::span<const Eviction> evictions) {
  COVEY_RETURN_IF_ERROR(Check(keys, gradient_sum, samples));
  for (const Eviction& eviction : evictions) Evict(eviction, keys);
  const UpdateContext context = {
      .learning_rate = schedule_.RateAt(samples_ + samples) * rate_factor,
      .gradient_scale = 1 / static_cast<double>(samples)};
  // While the entries of one block come from memory, those of the block before it are looked up,
  // and the rows of the block before that are updated.
  const uint64_t refused_before = totals_.refused;
  std::array<Block, 3> under_way;
  const size_t blocks = (keys.size() + kBlock - 1) / kBlock;
  for (size_t i = 0; i < blocks + 2; ++i) {
    if (i < blocks) {
      Block& block = under_way[i % 3];
      block.keys = keys.subspan(i * kBlock, std::min(kBlock, keys.size() - i * kBlock));
      FindPlaces(block);
    }
    if (i >= 1 && i - 1 < blocks) FindRows(under_way[(i - 1) % 3]);
    if (i >= 2) {
      UpdateRows(context, gradient_sum.data() + (i - 2) * kBlock * config_.width,
                 under_way[(i - 2) % 3]);
    }
  }
  ++version_;
  samples_ += samples;
  return totals_.refused - refused_before;
}

void SparseShard::Read(std::span<const uint64_t> keys, std::span<float> values) const {
  COVEY_CHECK(values.size() == keys.size() * config_.width);
  const size_t row_bytes = config_.width * sizeof(float);
  // Rows that were found and are on their way from memory.
  constexpr size_t kRowsAhead = 16;
  std::array<const float*, kRowsAhead> found;
  for (size_t i = 0; i < std::min(keys.size(), kAhead); ++i) index_.Prefetch(PlaceOf(keys[i]));
  for (size_t i = 0; i < keys.size() + kRowsAhead; ++i) {
    if (i >= kRowsAhead) {
      const size_t ready = i - kRowsAhead;
      float* const to = values.data() + ready * config_.width;
      if (const float* const row = found[ready % kRowsAhead]; row != nullptr) {
        std::copy_n(row, config_.width, to);
      } else {
        Initialize(config_.initializer, keys[ready] * config_.width, {to, config_.width});
      }
    }
    if (i >= keys.size()) continue;
    if (i + kAhead < keys.size()) index_.Prefetch(PlaceOf(keys[i + kAhead]));
    const IndexEntry* const entry = index_.Find(PlaceOf(keys[i]));
    const bool has_row = entry != nullptr && !IsPending(*entry);
    found[i % kRowsAhead] = has_row ? values_.Row(entry->row) : nullptr;
    if (has_row) PrefetchBytes(found[i % kRowsAhead], row_bytes);
  }
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
  std::copy_n(row.values, config_.width, values_.Row(number));
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
