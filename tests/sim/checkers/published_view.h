// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/net/message.h"

namespace covey::sim {

// The view that a message of the scheduler publishes; null when it carries none.
inline const proto::ClusterView* PublishedView(const Message& message) {
  const proto::Envelope& envelope = message.envelope;
  if (message.from().node != kSchedulerNode || !StatusOf(message).ok()) return nullptr;
  if (envelope.has_register_reply()) {
    const proto::RegisterReply& reply = envelope.register_reply();
    return reply.has_view() ? &reply.view() : nullptr;
  }
  if (envelope.has_watch_view_reply()) return &envelope.watch_view_reply().view();
  if (envelope.has_create_table_reply()) return &envelope.create_table_reply().view();
  if (envelope.has_initialize_tables_reply()) {
    return &envelope.initialize_tables_reply().view();
  }
  if (envelope.has_status_reply()) return &envelope.status_reply().view();
  return nullptr;
}

}  // namespace covey::sim
