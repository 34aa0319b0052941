// SPDX-License-Identifier: Apache-2.0
#include "server/table/spare_buffers.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "common/base/buffer.h"

namespace covey::server {

Buffer SpareBuffers::Take(size_t size) {
  const auto spare = std::find_if(spares_.begin(), spares_.end(), [size](const Buffer& buffer) {
    return buffer.size() == size && buffer.IsUnique();
  });
  if (spare == spares_.end()) return Buffer::Allocate(size);
  Buffer taken = std::move(*spare);
  spares_.erase(spare);
  retained_bytes_ -= size;
  return taken;
}

void SpareBuffers::Retire(Buffer buffer) {
  retained_bytes_ += buffer.size();
  spares_.push_back(std::move(buffer));
  while (retained_bytes_ > retained_bytes_max_ && spares_.size() > 1) {
    retained_bytes_ -= spares_.front().size();
    spares_.erase(spares_.begin());
  }
}

Buffer SpareBuffers::Kept(const Buffer& buffer) {
  if (!buffer.is_lent()) return buffer;
  Buffer copy = Take(buffer.size());
  std::memcpy(copy.MutableData(), buffer.data(), buffer.size());
  Retire(copy);
  return copy;
}

}  // namespace covey::server
