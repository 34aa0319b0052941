// SPDX-License-Identifier: Apache-2.0
#include "client/kept_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "common/base/check.h"

namespace covey::client {
namespace {

// Keys are looked up this many before their rows are copied, so that both are on their way from
// memory meanwhile.
constexpr size_t kAhead = 16;
constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
constexpr size_t kFloatsPerLine = 16;

size_t StrideOf(size_t width) {
  return width < kFloatsPerLine ? std::bit_ceil(width)
                                : (width + kFloatsPerLine - 1) / kFloatsPerLine * kFloatsPerLine;
}

}  // namespace

KeptRows::KeptRows(size_t width, size_t shards, const Limits& limits)
    : width_(width), stride_(StrideOf(width)), limits_(limits), newest_(shards) {
  COVEY_CHECK(width > 0 && shards > 0 && limits.rows > 0 && limits.rows < kNone);
  COVEY_CHECK(shards <= size_t{1} << 16);
}

bool KeptRows::IsFresh(const Entry& entry, int64_t oldest) const {
  const ShardVersion& newest = newest_[entry.shard];
  return entry.time >= oldest && entry.generation == static_cast<uint32_t>(newest.generation) &&
         newest.version.value() - entry.version <= limits_.updates;
}

void KeptRows::Find(absl::Time now, std::span<const uint64_t> keys, std::span<float> rows,
                    std::vector<uint32_t>& unfilled) {
  COVEY_CHECK(rows.size() == keys.size() * width_);
  const int64_t oldest = absl::ToUnixNanos(now - limits_.age);
  std::array<uint32_t, kAhead> numbers;
  for (size_t i = 0; i < keys.size() + kAhead; ++i) {
    uint32_t& number = numbers[i % kAhead];
    if (i >= kAhead) {
      const size_t place = i - kAhead;
      if (number == kNone) {
        ++counts_.missing;
        unfilled.push_back(static_cast<uint32_t>(place));
      } else if (Entry& entry = entries_[number]; !IsFresh(entry, oldest)) {
        ++counts_.stale;
        unfilled.push_back(static_cast<uint32_t>(place));
      } else {
        ++counts_.found;
        entry.was_found = true;
        std::copy_n(Row(number), width_, rows.data() + place * width_);
      }
    }
    if (i >= keys.size()) continue;
    if (i + kAhead < keys.size()) number_of_.prefetch(keys[i + kAhead]);
    const auto found = number_of_.find(keys[i]);
    number = found == number_of_.end() ? kNone : found->second;
    if (number == kNone) continue;
    __builtin_prefetch(&entries_[number], 1);
    __builtin_prefetch(Row(number));
  }
}

uint32_t KeptRows::Take() {
  if (!unused_.empty()) {
    const uint32_t number = unused_.back();
    unused_.pop_back();
    return number;
  }
  if (entries_.size() < limits_.rows) {
    const size_t number = entries_.size();
    rows_.resize(((number + 1) * stride_ + kFloatsPerLine - 1) / kFloatsPerLine);
    entries_.emplace_back();
    return static_cast<uint32_t>(number);
  }
  // Ends: an entry that is passed over goes in the next round.
  for (;; hand_ = (hand_ + 1) % entries_.size()) {
    Entry& entry = entries_[hand_];
    if (entry.was_found) {
      entry.was_found = false;
      continue;
    }
    number_of_.erase(entry.key);
    return static_cast<uint32_t>(std::exchange(hand_, (hand_ + 1) % entries_.size()));
  }
}

void KeptRows::Keep(uint64_t key, std::span<const float> row, const Reading& reading) {
  COVEY_CHECK(row.size() == width_);
  SetNewest(reading.shard, reading.version);
  const auto found = number_of_.find(key);
  const bool is_new = found == number_of_.end();
  const uint32_t number = is_new ? Take() : found->second;
  int64_t time = absl::ToUnixNanos(reading.time);
  const auto generation = static_cast<uint32_t>(reading.version.generation);
  if (!is_new) {
    const Entry& kept = entries_[number];
    const bool is_of_earlier = reading.version.generation < newest_[reading.shard].generation;
    if (is_of_earlier ||
        (generation == kept.generation && reading.version.version.value() < kept.version)) {
      return;
    }
    time = std::max(time, kept.time);
  }
  entries_[number] = {.key = key,
                      .version = reading.version.version.value(),
                      .time = time,
                      .generation = generation,
                      .shard = static_cast<uint16_t>(reading.shard),
                      // A row that is read again has been looked up before.
                      .was_found = !is_new};
  std::copy(row.begin(), row.end(), Row(number));
  if (is_new) number_of_.emplace(key, number);
}

void KeptRows::Remove(uint64_t key) {
  const auto found = number_of_.find(key);
  if (found == number_of_.end()) return;
  unused_.push_back(found->second);
  number_of_.erase(found);
}

}  // namespace covey::client
