// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

#include "common/net/message.h"
#include "worker/collective/collective.h"

namespace covey::worker {

// Slices from members that are ahead, kept until this one has begun the same collective.
//
// Limits: kGroupEarlyBytesMax and kGroupEarlySlicesMax; the caller asks first. Actor-confined.
class EarlySlices {
 public:
  // `other_bytes`: what else counts against the limit of bytes. `share`: the limits are divided by
  // it.
  bool HasRoom(const Message& message, size_t other_bytes, size_t share = 1) const;
  // Copies lent frames (Buffer::Lend). Precondition: HasRoom.
  void Keep(const CollectiveId& id, const Message& message);
  // In the order of arrival. Those of lower sequences of the stream are forgotten: nobody will
  // begin them any more.
  std::deque<Message> Take(const CollectiveId& id);
  void Clear();

  size_t bytes() const { return bytes_; }

 private:
  std::map<CollectiveId, std::deque<Message>> slices_;
  size_t bytes_ = 0;
  size_t count_ = 0;
};

}  // namespace covey::worker
