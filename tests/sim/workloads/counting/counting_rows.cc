// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/counting/counting_rows.h"

#include "common/base/random.h"
#include "common/table/key_slots.h"

namespace covey::sim {
namespace {

constexpr uint64_t kFurther = 300;
// Far from the home keys, which are small; one of them is the key whose place is 0.
uint64_t FurtherKey(uint64_t number) {
  return number == 0 ? UnmixBits(0) : ~uint64_t{0} - (number - 1) * 1'000'003;
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
  std::vector<uint64_t> keys = HomeKeys(table);
  const std::vector<uint64_t> further = FurtherKeys(slot);
  keys.insert(keys.end(), further.begin(), further.end());
  return BatchOf(table, keys);
}

std::vector<float> RowsOfPush(const KeyBatch& batch, size_t width, uint64_t slot,
                              uint64_t arrivals) {
  std::vector<float> rows(batch.distinct() * width);
  for (size_t row = 0; row < batch.distinct(); ++row) {
    rows[row * width + slot] = -static_cast<float>(arrivals);
  }
  return rows;
}

}  // namespace covey::sim
