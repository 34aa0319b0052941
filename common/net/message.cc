// SPDX-License-Identifier: Apache-2.0
#include "common/net/message.h"

#include "absl/strings/string_view.h"
#include "common/cluster/limits.h"

namespace covey {

Message MakeReply(const Message& request) {
  Message reply;
  reply.set_to(request.from());
  reply.envelope.set_from_loop(request.envelope.to_loop());
  reply.envelope.mutable_header()->set_request_id(request.envelope.header().request_id());
  reply.connection = request.connection;
  return reply;
}

void SetStatus(const absl::Status& status, Message& reply) {
  if (status.ok()) {
    reply.envelope.clear_status();
    return;
  }
  proto::Status& field = *reply.envelope.mutable_status();
  field.set_code(static_cast<int>(status.code()));
  const absl::string_view text = status.message().substr(0, kStatusMessageBytesMax);
  field.set_message(text.data(), text.size());
}

absl::Status StatusOf(const Message& reply) {
  if (!reply.envelope.has_status() || reply.envelope.status().code() == 0) return absl::OkStatus();
  const int code = reply.envelope.status().code();
  const bool known = code > 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return absl::Status(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kInternal,
                      reply.envelope.status().message());
}

std::string BodyName(const proto::Envelope& envelope) {
  const auto* field = proto::Envelope::descriptor()->FindFieldByNumber(envelope.body_case());
  return field == nullptr ? "nothing" : field->name();
}

}  // namespace covey
