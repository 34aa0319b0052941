// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/step_rows.h"

#include <algorithm>
#include <cmath>

#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/base/random.h"
#include "common/table/key_list.h"
#include "common/table/key_slots.h"
#include "common/tensor/codec.h"
#include "common/tensor/wire_format.h"
#include "common/tensor/wire_format_proto.h"

namespace covey::sim {
namespace {

// Home keys of a class lie in a range of so many; there is one for each shard of up to some
// hundred.
constexpr uint64_t kKeysPerClass = 4096;
constexpr uint64_t kFurtherPerClass = 8;

// Far from the home keys; one of them is the key whose place is 0.
uint64_t FurtherKey(uint64_t number) {
  return number == 0 ? UnmixBits(0) : ~uint64_t{0} - (number - 1) * 1'000'003;
}

}  // namespace

std::vector<uint64_t> HomeKeysOf(const proto::Shard& shard) {
  std::vector<uint64_t> keys;
  for (uint64_t of_class = 0; of_class < kRowClasses; ++of_class) {
    uint64_t key = of_class * kKeysPerClass;
    while (SlotOfKey(key) - shard.first_element() >= shard.element_count()) ++key;
    keys.push_back(key);
  }
  return keys;
}

std::vector<uint64_t> FurtherKeysOfStep(uint64_t element) {
  Random random(element + 1);
  std::vector<uint64_t> keys;
  const uint64_t first = element % kRowClasses * kFurtherPerClass;
  for (uint64_t number = first; number < first + kFurtherPerClass; ++number) {
    if (random.Chance(0.4)) keys.push_back(FurtherKey(number));
  }
  return keys;
}

std::vector<uint64_t> KeysOfStep(const proto::Table& table, uint64_t element) {
  std::vector<uint64_t> keys = FurtherKeysOfStep(element);
  for (const proto::Shard& shard : table.shards()) {
    keys.push_back(HomeKeysOf(shard)[element % kRowClasses]);
  }
  return keys;
}

void PushedElements::Note(const Message& message) {
  const proto::Envelope& envelope = message.envelope;
  const proto::KeyList& list =
      envelope.has_push_request() ? envelope.push_request().keys() : envelope.pull_request().keys();
  if (list.count() == 0 || IsNamed(list) || message.frames.empty()) return;
  const absl::StatusOr<Buffer> keys = DecodedKeys(list, message.frames[0]);
  if (keys.ok()) least_key_[NameOf(list)] = keys->As<uint64_t>()[0];
}

std::optional<uint64_t> PushedElements::ElementOf(const Message& message) const {
  const proto::PushRequest& push = message.envelope.push_request();
  const auto format = WireFormatFromProto(push.format());
  const size_t key_frames = IsNamed(push.keys()) ? 0 : 1;
  const auto least = least_key_.find(NameOf(push.keys()));
  if (!format || push.keys().count() == 0 || message.frames.size() != key_frames + 1 ||
      least == least_key_.end()) {
    return std::nullopt;
  }
  std::vector<float> rows(push.keys().count() * kRowColumns);
  const Buffer& encoded = message.frames[key_frames];
  if (encoded.size() != EncodedRowBytes(*format, kRowColumns, push.keys().count())) {
    return std::nullopt;
  }
  DecodeRows(*format, kRowColumns, encoded.bytes(), rows);
  const auto own = std::find_if(rows.begin(), rows.end(), [](float x) { return x != 0; });
  // The least key is that of the home row.
  return static_cast<uint64_t>(own - rows.begin()) % kRowColumns * kRowClasses +
         least->second / kKeysPerClass;
}

bool IsAppliedOnce(float value, const StepValues& values) {
  if (values.adaptive) return std::fabs(value - 1) < 1e-3f + values.rounding;
  if (value == 1) return true;
  if (!values.averages || value <= 0 || value > 1) return false;
  const float pushes = std::round(1 / value);
  return std::fabs(1 / value - pushes) < 1e-4f + values.rounding * pushes;
}

std::vector<float> ElementsOf(const std::map<uint64_t, std::vector<float>>& rows,
                              const proto::Shard& shard, size_t elements) {
  const std::vector<uint64_t> home = HomeKeysOf(shard);
  std::vector<float> values(elements);
  for (uint64_t element = 0; element < elements; ++element) {
    const auto row = rows.find(home[element % kRowClasses]);
    if (row != rows.end()) values[element] = row->second[ColumnOf(element)];
  }
  return values;
}

bool HasWholeRows(const proto::TableSpec& spec) {
  const proto::SparseRows& rows = spec.sparse();
  return rows.rows_max() == 0 && rows.admit_after() <= 1 && rows.admit_probability() == 0;
}

}  // namespace covey::sim
