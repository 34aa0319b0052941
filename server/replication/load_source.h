// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "proto/view.pb.h"

namespace covey::server {

// The part of a snapshot from which a shard is filled in place of its initializer. A value.
struct LoadSource {
  // Elements of the table of this name, whichever shards of the snapshot hold them.
  struct Values {
    std::string table;
    uint64_t first = 0;
    uint64_t count = 0;
  };

  // The snapshot's folder in the store.
  std::string folder;
  // The values with which a new shard begins; nothing = the whole content of the shard of the same
  // id, which this shard continues.
  std::optional<Values> values;
};

// Nothing: the shard is filled from its initializer. Pure.
inline std::optional<LoadSource> LoadSourceOf(const proto::Table& table,
                                              const proto::Shard& shard) {
  if (!shard.origin().empty()) return LoadSource{.folder = shard.origin(), .values = {}};
  if (table.initial_values().empty()) return std::nullopt;
  return LoadSource{.folder = table.initial_values(),
                    .values = LoadSource::Values{.table = table.spec().name(),
                                                 .first = shard.first_element(),
                                                 .count = shard.element_count()}};
}

}  // namespace covey::server
