// SPDX-License-Identifier: Apache-2.0
#include "client/kept_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "common/base/check.h"
#include "common/base/random.h"
#include "common/table/key_slots.h"
#include "common/tensor/row_copy.h"

namespace covey::client {
namespace {

// A key's set is fetched from memory about this many keys before it is searched, and its row as
// many before it is copied.
constexpr size_t kAhead = 16;
constexpr size_t kFloatsPerLine = 16;
// Of a row; the processor fetches the rest of a long one by itself.
constexpr size_t kLinesAhead = 4;
// The maximum age has so many ticks, or fewer where a tick is a nanosecond.
constexpr int64_t kTicksOfAge = 1 << 20;
// Beyond so many ticks, the first tick is moved, so that times fit in 32 bits.
constexpr int64_t kTicksMax = int64_t{1} << 31;

int64_t TicksIn(absl::Duration duration, absl::Duration tick) {
  absl::Duration rest;
  return absl::IDivDuration(duration, tick, &rest);
}

constexpr size_t RoundUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

size_t StrideOf(size_t width) {
  return width < kFloatsPerLine ? std::bit_ceil(width)
                                : (width + kFloatsPerLine - 1) / kFloatsPerLine * kFloatsPerLine;
}

void PrefetchRow(const float* row, size_t stride) {
  const size_t lines = std::min(kLinesAhead, (stride + kFloatsPerLine - 1) / kFloatsPerLine);
  for (size_t i = 0; i < lines; ++i) __builtin_prefetch(row + i * kFloatsPerLine);
}

}  // namespace

KeptRows::KeptRows(size_t width, const std::vector<uint64_t>& shard_ends, const Limits& limits)
    : width_(width),
      stride_(StrideOf(width)),
      limits_(limits),
      tick_(std::max(limits.age / kTicksOfAge, absl::Nanoseconds(1))),
      age_(TicksIn(limits.age, tick_)),
      ways_(std::min(kWays, limits.rows)),
      shard_ends_(shard_ends),
      newest_(shard_ends.size()) {
  COVEY_CHECK(width > 0 && limits.rows > 0);
  COVEY_CHECK(!shard_ends.empty() && shard_ends.back() == kKeySlots);
  const size_t sets = limits.rows / ways_;
  const size_t rows = sets * ways_;
  const size_t rows_begin = sets * sizeof(Set);
  const size_t versions_begin = RoundUp(rows_begin + rows * stride_ * sizeof(float));
  memory_ = Buffer::Allocate(versions_begin + rows * sizeof(uint64_t));
  uint8_t* const memory = memory_.MutableData();
  sets_ = {reinterpret_cast<Set*>(memory), sets};
  rows_ = reinterpret_cast<float*>(memory + rows_begin);
  versions_ = {reinterpret_cast<uint64_t*>(memory + versions_begin), rows};
  std::uninitialized_value_construct_n(sets_.data(), sets);
}

size_t KeptRows::SetOf(uint64_t key) const {
  return static_cast<size_t>((static_cast<unsigned __int128>(MixBits(key)) * sets_.size()) >> 64);
}

uint16_t KeptRows::ShardOf(uint64_t key) const {
  const auto end = std::ranges::upper_bound(shard_ends_, SlotOfKey(key));
  return static_cast<uint16_t>(end - shard_ends_.begin());
}

KeptRows::Place KeptRows::Look(size_t set, uint64_t key) const {
  const Set& keys = sets_[set];
  uint32_t found = 0;
  for (size_t way = 0; way < kWays; ++way) {
    found |= uint32_t{keys.keys[way] == key && keys.read_at[way] != 0} << way;
  }
  return {.set = set, .way = found == 0 ? kWays : static_cast<size_t>(std::countr_zero(found))};
}

template <typename Visit>
void KeptRows::ForEach(const Visit& visit) {
  for (size_t set = 0; set < sets_.size(); ++set) {
    for (size_t way = 0; way < ways_; ++way) {
      if (sets_[set].read_at[way] != 0) visit(Place{.set = set, .way = way});
    }
  }
}

uint32_t KeptRows::Ticks(absl::Time time) {
  if (limits_.age == absl::InfiniteDuration()) return 1;
  if (first_tick_ == absl::InfinitePast()) first_tick_ = time - limits_.age;
  int64_t ticks = TicksIn(time - first_tick_, tick_);
  if (ticks > kTicksMax) {
    const int64_t gone = ticks - 2 * kTicksOfAge;
    first_tick_ += gone * tick_;
    ticks -= gone;
    ForEach([&](const Place& place) {
      uint32_t& read_at = sets_[place.set].read_at[place.way];
      if (read_at <= gone) {
        Drop(place);
      } else {
        read_at -= static_cast<uint32_t>(gone);
      }
    });
  }
  return static_cast<uint32_t>(std::max<int64_t>(ticks, 0)) + 1;
}

bool KeptRows::IsFresh(const Place& place, uint64_t key, uint32_t now) const {
  if (now - sets_[place.set].read_at[place.way] > age_) return false;
  if (limits_.updates == std::numeric_limits<uint64_t>::max()) return true;
  const uint64_t newest = newest_[ShardOf(key)].version.value();
  return newest - versions_[NumberOf(place)] <= limits_.updates;
}

void KeptRows::CountFound(const Place& place) {
  Set& set = sets_[place.set];
  const uint32_t found = set.found >> (2 * place.way) & kFoundMax;
  if (found < kFoundMax) set.found += 1u << (2 * place.way);
}

// Fetches the set of each key, searches it, and copies the row of the place that was found: in the
// order of keys, and each stage kAhead keys later than the one before.
template <typename Search, typename Copy>
void KeptRows::InStages(std::span<const uint64_t> keys, const Search& search, const Copy& copy) {
  // Of what a stage leaves to the next one, kAhead are waiting at most.
  std::array<size_t, kAhead> sets;
  std::array<Place, kAhead> places;
  const auto run = [&keys](size_t end, const auto& stage) {
    for (size_t i = end - std::min(end, kAhead); i < std::min(end, keys.size()); ++i) stage(i);
  };
  for (size_t end = kAhead; end < keys.size() + 3 * kAhead; end += kAhead) {
    if (end >= 3 * kAhead) {
      run(end - 2 * kAhead, [&](size_t i) { copy(i, places[i % kAhead]); });
    }
    if (end >= 2 * kAhead) {
      run(end - kAhead, [&](size_t i) {
        Place& place = places[i % kAhead];
        place = search(i, sets[i % kAhead]);
        if (place.way != kWays) PrefetchRow(Row(place), stride_);
      });
    }
    run(end, [&](size_t i) {
      sets[i % kAhead] = SetOf(keys[i]);
      __builtin_prefetch(&sets_[sets[i % kAhead]], 1);
    });
  }
}

void KeptRows::Find(absl::Time now, std::span<const uint64_t> keys, std::span<float> rows,
                    std::vector<uint32_t>& unfilled) {
  COVEY_CHECK(rows.size() == keys.size() * width_);
  const uint32_t ticks = Ticks(now);
  InStages(
      keys, [&](size_t i, size_t set) { return Look(set, keys[i]); },
      [&](size_t i, const Place& place) {
        if (place.way != kWays && IsFresh(place, keys[i], ticks)) {
          ++counts_.found;
          CountFound(place);
          CopyRow(Row(place), width_ * sizeof(float), rows.data() + i * width_);
        } else {
          ++(place.way == kWays ? counts_.missing : counts_.stale);
          unfilled.push_back(static_cast<uint32_t>(i));
        }
      });
}

KeptRows::Place KeptRows::Take(size_t set, uint64_t key) {
  Set& keys = sets_[set];
  for (size_t way = 0; way < ways_; ++way) {
    if (keys.read_at[way] != 0) continue;
    ++size_;
    return {.set = set, .way = way};
  }
  // Of the last bits of the hash; the first ones chose the set.
  const uint32_t mark = 1u << (static_cast<uint32_t>(MixBits(key)) % kTurnedAwayBits);
  if ((keys.turned_away & mark) == 0) {
    if (std::popcount(uint32_t{keys.turned_away}) >= kTurnedAwayMax) keys.turned_away = 0;
    keys.turned_away |= mark;
    return {.set = set};
  }
  // Ends: each place that is passed over has been found once less in the next round.
  for (;; keys.hand = static_cast<uint32_t>((keys.hand + 1) % ways_)) {
    const size_t way = keys.hand;
    if ((keys.found >> (2 * way) & kFoundMax) == 0) {
      keys.hand = static_cast<uint32_t>((way + 1) % ways_);
      return {.set = set, .way = way};
    }
    keys.found -= 1u << (2 * way);
  }
}

KeptRows::Place KeptRows::PlaceFor(size_t set, uint64_t key, uint32_t read_at, uint64_t version) {
  Place place = Look(set, key);
  if (place.way == kWays) {
    place = Take(set, key);
    if (place.way == kWays) return place;
    sets_[set].keys[place.way] = key;
    sets_[set].read_at[place.way] = read_at;
  } else {
    if (version < versions_[NumberOf(place)]) return {.set = set};
    uint32_t& kept_at = sets_[set].read_at[place.way];
    kept_at = std::max(kept_at, read_at);
    CountFound(place);  // a row that is read again has been looked up before
  }
  versions_[NumberOf(place)] = version;
  return place;
}

void KeptRows::Keep(absl::Time time, std::span<const uint64_t> keys, std::span<const float> rows,
                    std::span<const ShardVersion> versions) {
  COVEY_CHECK(rows.size() == keys.size() * width_);
  SetNewest(versions);
  const uint32_t read_at = Ticks(time);
  InStages(
      keys,
      [&](size_t i, size_t set) {
        const uint16_t shard = ShardOf(keys[i]);
        if (versions[shard].generation < newest_[shard].generation) return Place{};
        return PlaceFor(set, keys[i], read_at, versions[shard].version.value());
      },
      [&](size_t i, const Place& place) {
        if (place.way != kWays)
          CopyRow(rows.data() + i * width_, width_ * sizeof(float), Row(place));
      });
}

void KeptRows::SetNewest(std::span<const ShardVersion> versions) {
  COVEY_CHECK(versions.size() == newest_.size());
  for (uint32_t shard = 0; shard < versions.size(); ++shard) {
    ShardVersion& newest = newest_[shard];
    const bool begins_anew = versions[shard].generation > newest.generation;
    newest = std::max(newest, versions[shard]);
    if (!begins_anew || size_ == 0) continue;
    ForEach([&](const Place& place) {
      if (ShardOf(sets_[place.set].keys[place.way]) == shard) Drop(place);
    });
  }
}

void KeptRows::Drop(const Place& place) {
  Set& set = sets_[place.set];
  set.read_at[place.way] = 0;
  set.found &= ~(kFoundMax << (2 * place.way));
  --size_;
}

void KeptRows::Remove(uint64_t key) {
  const Place place = Look(SetOf(key), key);
  if (place.way != kWays) Drop(place);
}

}  // namespace covey::client
