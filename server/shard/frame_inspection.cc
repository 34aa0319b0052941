// SPDX-License-Identifier: Apache-2.0
#include "server/shard/frame_inspection.h"

#include <algorithm>
#include <cstddef>

#include "common/base/crc32c.h"
#include "common/optimizer/kernels.h"

namespace covey::server {
namespace {

// 16 KiB: half of a core's first-level cache, and enough for the checksum's full speed.
constexpr size_t kBlockElements = 4096;

std::span<const uint8_t> BytesOf(std::span<const float> elements) {
  return {reinterpret_cast<const uint8_t*>(elements.data()), elements.size_bytes()};
}

}  // namespace

FrameInspection InspectFrame(std::span<const float> elements) {
  FrameInspection found;
  while (!elements.empty()) {
    const auto block = elements.first(std::min(elements.size(), kBlockElements));
    found.checksum = ExtendCrc32c(found.checksum, BytesOf(block));
    found.all_finite = found.all_finite && AllFinite(block);
    elements = elements.subspan(block.size());
  }
  return found;
}

}  // namespace covey::server
