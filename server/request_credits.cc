// SPDX-License-Identifier: Apache-2.0
#include "server/request_credits.h"

namespace covey::server {

void RequestCredits::Received(absl::Time now, const Message& message) {
  const proto::Envelope& envelope = message.envelope;
  if ((envelope.has_push_request() || envelope.has_pull_request()) && is_from_node_(message)) {
    credits_.Heard(now, message.from().node);
  }
}

void RequestCredits::Sending(Message& message) {
  proto::Envelope& envelope = message.envelope;
  if (!envelope.has_push_reply() && !envelope.has_pull_reply()) return;
  if (envelope.credit_bytes() == 0) envelope.set_credit_bytes(credits_.Share());
}

}  // namespace covey::server
