// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network/bent_slice.h"

#include <cstdint>

#include "common/base/check.h"
#include "common/net/frame_checksum.h"

namespace covey::sim {
namespace {

// Streams from here on do not belong to steps, see CollectiveId of worker/collective/collective.h.
constexpr uint32_t kStepStreamsEnd = 0x80000000;

// A slice of the result of a step's collective.
bool IsResult(const proto::Envelope& envelope) {
  if (!envelope.has_group_slice()) return false;
  const proto::GroupSlice& slice = envelope.group_slice();
  return slice.phase() == proto::GroupSlice::SPREAD && slice.stream() < kStepStreamsEnd;
}

bool IsPushOfClient(const proto::Envelope& envelope) {
  return envelope.has_push_request() &&
         envelope.push_request().id().producer_kind() == proto::PushId::CLIENT;
}

}  // namespace

bool IsBendable(const Message& message) {
  if (message.frames.empty() || message.frames[0].size() < sizeof(float)) return false;
  return IsResult(message.envelope) || IsPushOfClient(message.envelope);
}

void Bend(Message& message) {
  COVEY_CHECK(IsBendable(message));
  if (IsResult(message.envelope)) message.frames[0].MutableData()[0] ^= 1;
  // The exponent of the first number.
  if (IsPushOfClient(message.envelope)) message.frames[0].MutableData()[3] ^= 0x40;
  // As if the sender had held this data; otherwise the receiver would notice the damage.
  message.envelope.clear_frame_checksums();
  SetFrameChecksums(message);
}

}  // namespace covey::sim
