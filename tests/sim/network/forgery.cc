// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network/forgery.h"

#include "common/base/check.h"
#include "common/net/frame_checksum.h"
#include "common/net/wire.h"

namespace covey::sim {
namespace {

// As sequences, versions and indices that follow on those of an honest sender.
void GoOn(proto::Envelope& envelope) {
  switch (envelope.body_case()) {
    case proto::Envelope::kPushRequest: {
      proto::PushRequest& push = *envelope.mutable_push_request();
      push.mutable_id()->set_sequence(push.id().sequence() + 1);
      if (push.step() > 0) push.set_step(push.step() + 1);
      break;
    }
    case proto::Envelope::kReplicateRequest: {
      proto::ReplicateRequest& record = *envelope.mutable_replicate_request();
      record.set_index(record.index() + 1);
      if (record.version() > 0) record.set_version(record.version() + 1);
      for (proto::ReplicatedPush& push : *record.mutable_pushes()) {
        push.mutable_id()->set_sequence(push.id().sequence() + 1);
      }
      break;
    }
    case proto::Envelope::kReplicateReply: {
      proto::ReplicateReply& reply = *envelope.mutable_replicate_reply();
      reply.set_durable_index(reply.durable_index() + 3);
      reply.set_held_index(reply.held_index() + 3);
      break;
    }
    case proto::Envelope::kReplicaPiece:
      envelope.mutable_replica_piece()->set_piece(envelope.replica_piece().piece() + 1);
      break;
    default:
      break;
  }
}

}  // namespace

bool IsForgeable(const Message& message) {
  return IsOfDataPlane(message.envelope) && !message.envelope.has_push_reply() &&
         !message.envelope.has_pull_reply();
}

bool IsOfGroup(const Message& message) {
  switch (message.envelope.body_case()) {
    case proto::Envelope::kGroupSlice:
    case proto::Envelope::kGroupAbort:
    case proto::Envelope::kGroupProbe:
    case proto::Envelope::kGroupHello:
      return true;
    case proto::Envelope::kPushRequest:
      return message.envelope.push_request().group() != 0;
    default:
      return false;
  }
}

void Forge(Random& random, Message& message) {
  COVEY_CHECK(IsForgeable(message));
  if (random.Chance(0.5)) GoOn(message.envelope);
  for (Buffer& frame : message.frames) {
    if (!frame.empty()) frame.MutableData()[random.Below(frame.size())] ^= 0x40;
  }
  if (message.frames.empty()) return;
  message.envelope.clear_frame_checksums();
  SetFrameChecksums(message);
}

}  // namespace covey::sim
