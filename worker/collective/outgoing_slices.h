// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/base/buffer.h"
#include "common/collective/part_range.h"
#include "common/net/message.h"
#include "worker/collective/collective.h"

namespace covey::worker {

// What a broadcast carries beside its elements (Collective.attachment), with the checksum that the
// root made: at every hop the same, as that of a result's frame.
struct Attachment {
  Buffer bytes;
  uint32_t checksum = 0;
};

// One message of a collective to another member. The round is for the caller to fill in; the frame
// is a unique handle.
struct OutgoingSlice {
  uint32_t peer = 0;
  proto::GroupSlice slice;
  Buffer frame;  // empty for a token
  // Of the frame. A result's is that of its owner at every hop, so that bytes which change in a
  // member that passes them on are noticed by the next one.
  uint32_t checksum = 0;
  Attachment attachment;  // with the first slice; else empty
};

// The slices of one collective that are complete and wait to be sent. Slices that are adjacent, for
// the same member and of the same knowledge share a message. Actor-confined. Deterministic.
class OutgoingSlices {
 public:
  struct Part {
    uint32_t peer = 0;
    proto::GroupSlice::Phase phase = proto::GroupSlice::REDUCE;
    PartRange range;
    uint32_t checksum = 0;
    uint64_t samples = 0;
    uint64_t agreed_plan_epoch = 0;
    Buffer encoded;         // empty: the data itself is sent, as it is
    Attachment attachment;  // only with the range that begins with element 0
  };
  void Add(Part part) { parts_.push_back(std::move(part)); }
  void Clear() { parts_.clear(); }

  struct Sender {
    uint32_t rank = 0;
    uint32_t size = 0;          // of the group
    size_t slice_elements = 0;  // of a message at the most
  };
  // All of them, as messages in the order in which they are to be sent.
  std::vector<OutgoingSlice> Take(const Collective& collective, const Sender& sender);

 private:
  static OutgoingSlice Join(std::span<const Part> together, const Collective& collective,
                            uint32_t rank);

  std::vector<Part> parts_;
};

}  // namespace covey::worker
