// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network/forgery.h"

#include "common/base/check.h"
#include "common/net/frame_checksum.h"

namespace covey::sim {
namespace {

// A sequence, version or index that follows on that of an honest sender, or lies at the end.
void Advance(proto::Envelope& envelope, uint64_t by) {
  switch (envelope.body_case()) {
    case proto::Envelope::kPushRequest: {
      proto::PushRequest& push = *envelope.mutable_push_request();
      push.mutable_id()->set_sequence(push.id().sequence() + by);
      if (push.step() > 0) push.set_step(push.step() + by);
      break;
    }
    case proto::Envelope::kPushReply: {
      proto::PushReply& pushed = *envelope.mutable_push_reply();
      pushed.set_durable(true);
      pushed.set_applied_version(pushed.applied_version() + by);
      pushed.mutable_state()->set_version(pushed.state().version() + by);
      break;
    }
    case proto::Envelope::kPullReply: {
      proto::ShardState& state = *envelope.mutable_pull_reply()->mutable_state();
      state.set_version(state.version() + by);
      break;
    }
    case proto::Envelope::kReplicateRequest: {
      proto::ReplicateRequest& record = *envelope.mutable_replicate_request();
      record.set_index(record.index() + by);
      if (record.version() > 0) record.set_version(record.version() + by);
      for (proto::ReplicatedPush& push : *record.mutable_pushes()) {
        push.mutable_id()->set_sequence(push.id().sequence() + by);
      }
      break;
    }
    case proto::Envelope::kReplicateReply: {
      proto::ReplicateReply& reply = *envelope.mutable_replicate_reply();
      reply.set_durable_index(reply.durable_index() + by);
      reply.set_held_index(reply.held_index() + by);
      break;
    }
    case proto::Envelope::kReplicaPiece:
      envelope.mutable_replica_piece()->set_piece(envelope.replica_piece().piece() + 1);
      break;
    case proto::Envelope::kWatchViewReply: {
      proto::ClusterView& view = *envelope.mutable_watch_view_reply()->mutable_view();
      view.set_epoch(view.epoch() + by);
      break;
    }
    default:
      break;
  }
}

}  // namespace

bool IsForgeable(const Message& message) {
  switch (message.envelope.body_case()) {
    case proto::Envelope::kPushRequest:
    case proto::Envelope::kPushReply:
    case proto::Envelope::kPullRequest:
    case proto::Envelope::kPullReply:
    case proto::Envelope::kReplicateRequest:
    case proto::Envelope::kReplicateReply:
    case proto::Envelope::kReplicaPiece:
    case proto::Envelope::kGroupSlice:
    case proto::Envelope::kGroupAbort:
    case proto::Envelope::kGroupProbe:
    case proto::Envelope::kGroupHello:
    case proto::Envelope::kPeerProbe:
    case proto::Envelope::kWatchViewReply:
      return true;
    default:
      return false;
  }
}

void Forge(Random& random, Message& message) {
  COVEY_CHECK(IsForgeable(message));
  const uint64_t kind = random.Below(4);
  if (kind == 0) Advance(message.envelope, 1);
  if (kind == 1) Advance(message.envelope, (uint64_t{1} << 63) - 1);
  if (random.Chance(0.2)) {
    message.envelope.mutable_header()->set_epoch((uint64_t{1} << 63) - 1 + random.Below(3));
  }
  for (Buffer& frame : message.frames) {
    if (!frame.empty()) frame.MutableData()[random.Below(frame.size())] ^= 0x40;
  }
  if (message.frames.empty()) return;
  message.envelope.clear_frame_checksums();
  SetFrameChecksums(message);
}

}  // namespace covey::sim
