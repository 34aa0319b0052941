// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/counting/counting_rows.h"

#include <map>

#include "common/base/random.h"
#include "common/table/key_slots.h"

namespace covey::sim {
namespace {

constexpr uint64_t kFurther = 300;
// Far from the home keys, which are small; one of them is the key whose place is 0.
uint64_t FurtherKey(uint64_t number) {
  return number == 0 ? UnmixBits(0) : ~uint64_t{0} - (number - 1) * 1'000'003;
}

std::vector<uint64_t> KeysOfPush(const proto::Table& table, uint64_t slot) {
  std::vector<uint64_t> keys = HomeKeys(table);
  const std::vector<uint64_t> further = FurtherKeys(slot);
  keys.insert(keys.end(), further.begin(), further.end());
  return keys;
}

}  // namespace

std::vector<uint64_t> HomeKeys(const proto::Table& table) {
  std::vector<uint64_t> keys;
  for (const proto::Shard& shard : table.shards()) {
    uint64_t key = 0;
    while (SlotOfKey(key) - shard.first_element() >= shard.element_count()) ++key;
    keys.push_back(key);
  }
  return keys;
}

std::vector<uint64_t> FurtherKeys(uint64_t slot) {
  Random random(slot + 1);
  std::vector<uint64_t> keys;
  if (random.Chance(0.3)) return keys;
  for (uint64_t left = 1 + random.Below(12); left > 0; --left) {
    // Some keys are in many pushes.
    keys.push_back(FurtherKey(random.Below(random.Chance(0.3) ? 8 : kFurther)));
  }
  return keys;
}

std::vector<uint64_t> AllFurtherKeys() {
  std::vector<uint64_t> keys;
  for (uint64_t number = 0; number < kFurther; ++number) keys.push_back(FurtherKey(number));
  return keys;
}

std::shared_ptr<const KeyBatch> BatchOf(const proto::Table& table, std::span<const uint64_t> keys) {
  std::vector<uint64_t> ends;
  for (const proto::Shard& shard : table.shards()) {
    ends.push_back(shard.first_element() + shard.element_count());
  }
  auto batch = std::make_shared<KeyBatch>();
  batch->Assign(keys, ends);
  return batch;
}

std::shared_ptr<const KeyBatch> BatchOfPush(const proto::Table& table, uint64_t slot) {
  return BatchOf(table, KeysOfPush(table, slot));
}

std::vector<float> RowsOfPush(const proto::Table& table, const KeyBatch& batch, size_t width,
                              uint64_t slot, uint64_t arrivals) {
  const std::vector<uint64_t> keys = KeysOfPush(table, slot);
  // All places but the first one of a key add 1, and that makes up for them.
  std::vector<float> rows(keys.size() * width);
  std::map<uint64_t, size_t> first_places;
  for (size_t place = 0; place < keys.size(); ++place) {
    const auto [first, is_first] = first_places.try_emplace(keys[place], place);
    float& at_first = rows[first->second * width + slot];
    at_first -= is_first ? static_cast<float>(arrivals) : 1;
    if (!is_first) rows[place * width + slot] = 1;
  }
  std::vector<float> sums(batch.distinct() * width);
  batch.SumAllRows(width, rows, sums);
  return sums;
}

}  // namespace covey::sim
