// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/cluster/ids.h"

namespace covey {
namespace proto {
class Table;
}  // namespace proto
}  // namespace covey

namespace covey::client {

// A program's reference to a table. Immutable value; stays valid as shards move.
struct Table {
  TableId id;
  std::string name;
  // Product of the shape's extents; 0 for a sparse table.
  uint64_t elements = 0;
  // Arrays of state that the optimizer keeps on the servers, each as large as the table; 0 for a
  // sparse table, whose state cannot be pulled.
  size_t slots = 0;
  // Elements of a row of a sparse table; 0 for a dense one.
  size_t width = 0;
  // Of a sparse table: the slots (common/table/key_slots.h) at which its shards end.
  std::vector<uint64_t> shard_ends = {};
  // Of a table of vectors (common/vectors/vector_function.h): how many there are, the values among
  // them. They are no slots: functions and queries are the way to them. 0 for other tables.
  size_t vectors = 0;

  bool is_sparse() const { return width != 0; }
};

// The reference to a table that a scheduler lists (ParameterClient::ListTables).
Table TableOf(const proto::Table& table);

}  // namespace covey::client
