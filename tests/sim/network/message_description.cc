// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network/message_description.h"

#include "absl/strings/str_cat.h"

namespace covey::sim {
namespace {

// Details of a few kinds of messages, for traces.
std::string Details(const proto::Envelope& envelope) {
  const auto push = [](const proto::PushId& id) {
    return absl::StrCat(" table ", id.table(), " shard ", id.shard(), " push ", id.producer(), "/",
                        id.sequence());
  };
  if (envelope.has_push_request()) return push(envelope.push_request().id());
  if (envelope.has_push_reply()) {
    const proto::PushReply& reply = envelope.push_reply();
    return absl::StrCat(push(reply.id()), " applied at ", reply.applied_version(),
                        reply.durable() ? " durable" : "", reply.duplicate() ? " duplicate" : "",
                        " version ", reply.state().version());
  }
  if (envelope.has_pull_reply()) {
    return absl::StrCat(" table ", envelope.pull_reply().table(), " shard ",
                        envelope.pull_reply().shard(), " version ",
                        envelope.pull_reply().state().version());
  }
  if (envelope.has_replicate_request()) {
    const proto::ReplicateRequest& record = envelope.replicate_request();
    return absl::StrCat(" table ", record.chain().table(), " shard ", record.chain().shard(),
                        " chain epoch ", record.chain().chain_epoch(), " record ", record.index());
  }
  if (envelope.has_replicate_reply()) {
    const proto::ReplicateReply& reply = envelope.replicate_reply();
    return absl::StrCat(" table ", reply.chain().table(), " shard ", reply.chain().shard(),
                        " chain epoch ", reply.chain().chain_epoch(), " held ", reply.held_index(),
                        " durable ", reply.durable_index());
  }
  if (envelope.has_work_request()) {
    return absl::StrCat(" ", envelope.work_request().ShortDebugString());
  }
  if (envelope.has_work_reply()) return absl::StrCat(" ", envelope.work_reply().ShortDebugString());
  return "";
}

}  // namespace

std::string Describe(const Message& message) {
  const proto::Header& header = message.envelope.header();
  const absl::Status status = StatusOf(message);
  return absl::StrCat(BodyName(message.envelope), " ", header.node(), ".",
                      message.envelope.from_loop(), " -> ", message.envelope.to_node(), ".",
                      message.envelope.to_loop(), " request ", header.request_id(), " epoch ",
                      header.epoch(), Details(message.envelope),
                      status.ok() ? "" : absl::StrCat(" [", status.ToString(), "]"));
}

}  // namespace covey::sim
