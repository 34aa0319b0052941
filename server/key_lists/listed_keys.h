// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "common/base/buffer.h"
#include "common/table/key_list.h"
#include "server/sparse/row_places.h"

namespace covey::server {

// The keys of a request, decoded, which lie in the shard's slots.
struct ListedKeys {
  EncodedKeys encoded;  // as records carry them: they have no name
  Buffer keys;          // 8 bytes each
  // Where their rows are. Null: they are looked up once only.
  std::shared_ptr<RowPlaces> places;

  std::span<const uint64_t> spans() const { return keys.As<uint64_t>(); }
};

}  // namespace covey::server
