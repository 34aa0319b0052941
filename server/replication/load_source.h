// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "proto/view.pb.h"

namespace covey::server {

// The part of a snapshot from which a shard is filled in place of its initializer: a range of one
// of its tables, and how much of that belongs to the shard. A value.
struct LoadSource {
  // Each takes what those before it take, too.
  enum class Takes {
    kValues,      // the values, whichever shards of the snapshot hold them
    kState,       // optimizer slots, version and samples, of the shard with this range
    kEverything,  // clocks and pushes: the shard continues that one
  };

  // The snapshot's folder in the store.
  std::string folder;
  // Of the table in the snapshot.
  std::string table;
  uint64_t first = 0;
  uint64_t count = 0;
  Takes takes = Takes::kEverything;
};

// Nothing: the shard is filled from its initializer. Pure.
inline std::optional<LoadSource> LoadSourceOf(const proto::Table& table,
                                              const proto::Shard& shard) {
  LoadSource source = {.folder = shard.origin(),
                       .table = table.spec().name(),
                       .first = shard.first_element(),
                       .count = shard.element_count()};
  if (!source.folder.empty()) return source;
  if (!table.has_origin()) return std::nullopt;
  source.folder = table.origin().folder();
  source.table = table.origin().table();
  source.takes = table.origin().takes() == proto::TableOrigin::STATE ? LoadSource::Takes::kState
                                                                     : LoadSource::Takes::kValues;
  return source;
}

}  // namespace covey::server
