// SPDX-License-Identifier: Apache-2.0
#include "server/shard/replies.h"

#include <cstdint>
#include <utility>

namespace covey::server {
namespace {

// Advice to a client whose request was refused because too many bytes wait: about the time that a
// full window takes.
constexpr uint32_t kRetryAfterMs = 20;

}  // namespace

Message BeginReply(const Message& request) {
  Message reply = MakeReply(request);
  if (request.envelope.has_push_request()) {
    *reply.envelope.mutable_push_reply()->mutable_id() = request.envelope.push_request().id();
  } else {
    proto::PullReply& body = *reply.envelope.mutable_pull_reply();
    body.set_table(request.envelope.pull_request().table());
    body.set_shard(request.envelope.pull_request().shard());
  }
  return reply;
}

void MakeRefusal(const absl::Status& why, Message& reply) {
  if (reply.envelope.has_push_reply()) {
    proto::PushReply bare;
    *bare.mutable_id() = reply.envelope.push_reply().id();
    bare.set_keys_unknown(reply.envelope.push_reply().keys_unknown());
    *reply.envelope.mutable_push_reply() = std::move(bare);
  } else {
    reply.envelope.mutable_pull_reply()->clear_state();
    reply.envelope.mutable_pull_reply()->clear_answers();
    reply.envelope.mutable_pull_reply()->clear_scanned();
    reply.envelope.mutable_pull_reply()->clear_key_lists_kept();
  }
  reply.frames.clear();
  reply.envelope.clear_frame_checksums();
  SetStatus(why, reply);
  if (absl::IsResourceExhausted(why)) {
    reply.envelope.mutable_status()->set_retry_after_ms(kRetryAfterMs);
  }
}

}  // namespace covey::server
