// SPDX-License-Identifier: Apache-2.0
#include "server/table/row_memory.h"

namespace covey::server {
namespace {

class OfTheProcess final : public RowMemory {
 public:
  Buffer NewChunk(size_t bytes) override { return Buffer::Allocate(bytes); }
};

}  // namespace

RowMemory& ProcessRowMemory() {
  static OfTheProcess memory;  // without state
  return memory;
}

}  // namespace covey::server
