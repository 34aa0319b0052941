// SPDX-License-Identifier: Apache-2.0
#include "server/table/row_memory.h"

#include "server/table/chunk_reserve.h"

namespace covey::server {
namespace {

// A huge page, which takes long to touch. A server that makes a million rows per second of 64 bytes
// needs one every 30 ms.
constexpr size_t kReservedBytes = 2 << 20;
constexpr size_t kAhead = 4;

class OfTheProcess final : public RowMemory {
 public:
  Buffer NewChunk(size_t bytes) override {
    return bytes == kReservedBytes ? reserve_.Take() : Buffer::Allocate(bytes);
  }

 private:
  ChunkReserve reserve_{kReservedBytes, kAhead};
};

}  // namespace

RowMemory& ProcessRowMemory() {
  static OfTheProcess memory;  // thread-safe, and its chunks may outlive it
  return memory;
}

}  // namespace covey::server
