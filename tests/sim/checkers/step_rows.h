// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/net/message.h"
#include "common/table/key_list.h"
#include "proto/view.pb.h"

namespace covey::sim {

// How the steps of groups count in a sparse table. As in a dense table, each step owns an element;
// here the element is a column of some rows: of one in each shard, its home row, and of a few
// further ones. Steps whose elements differ by a multiple of kRowClasses share these rows, so that
// a row is pushed to again and again. The home rows together show what a dense table of kRowClasses
// * kRowColumns elements would. The functions are pure.
inline constexpr uint64_t kRowClasses = 32;
inline constexpr size_t kRowColumns = 64;
constexpr size_t ColumnOf(uint64_t element) { return element / kRowClasses; }

// The keys of the home rows of a shard, by class.
std::vector<uint64_t> HomeKeysOf(const proto::Shard& shard);
// Of an element, below kRowClasses * 8 in number over all elements; some elements have none.
std::vector<uint64_t> FurtherKeysOfStep(uint64_t element);
// The keys of a step's push.
std::vector<uint64_t> KeysOfStep(const proto::Table& table, uint64_t element);

// Tells the elements of pushes. Remembers the lists of keys that are sent, since later pushes only
// name them.
class PushedElements {
 public:
  // A message that is sent; others than pushes and pulls say nothing.
  void Note(const Message& message);
  // The element of a PushRequest; nothing when it does not hold a gradient, or its keys are
  // unknown.
  std::optional<uint64_t> ElementOf(const Message& message) const;

 private:
  std::map<KeyListName, uint64_t> least_key_;
};

// What a value of a step's own element may be.
struct StepValues {
  // An update may combine several pushes, so an element holds its share of one.
  bool averages = false;
  // Values do not depend on the size of an update.
  bool adaptive = false;
  // The largest relative error of a value, which its type rounds; 0 in float32.
  float rounding = 0;
};
// Whether such a value shows that its push was applied once. Also of dense tables.
bool IsAppliedOnce(float value, const StepValues& values);
// Rows as the elements of a dense shard: those of the home rows; an element without a row is 0.
std::vector<float> ElementsOf(const std::map<uint64_t, std::vector<float>>& rows,
                              const proto::Shard& shard, size_t elements);

// Whether all rows of a table are made by the first push that holds their keys, and stay.
bool HasWholeRows(const proto::TableSpec& spec);

}  // namespace covey::sim
