// SPDX-License-Identifier: Apache-2.0
#include "client/engine/client_actor.h"

#include <algorithm>

namespace covey::client {
namespace {

const proto::ClusterView* ViewIn(const proto::Envelope& envelope) {
  if (envelope.has_create_table_reply()) return &envelope.create_table_reply().view();
  if (envelope.has_initialize_tables_reply()) return &envelope.initialize_tables_reply().view();
  return nullptr;
}

}  // namespace

ClientActor::ClientActor(const Options& options)
    : member_(options.member, next_request_id_),
      engine_(options.client, next_request_id_),
      control_(next_request_id_),
      initializations_(engine_, control_) {
  member_.OnChange([this](absl::Time now, Outbox& outbox) { MembershipChanged(now, outbox); });
}

void ClientActor::MembershipChanged(absl::Time now, Outbox& outbox) {
  engine_.SetView(now, member_.node(), member_.view(), outbox);
  initializations_.SetView(now, member_.node(), member_.view(), outbox);
  if (member_.state() == Member::State::kFailed) {
    engine_.FailAll(now, member_.failure(), outbox);
    control_.FailAll(now, member_.failure(), outbox);
  }
  for (const auto& callback : on_change_) callback(now, outbox);
}

void ClientActor::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  // A table that was created or initialized comes with the view that shows it, so that it can be
  // used at once. Only the answer to a request of this client is believed.
  const proto::ClusterView* const view = ViewIn(message.envelope);
  if (view != nullptr && control_.Awaits(message) && StatusOf(message).ok()) {
    member_.Adopt(now, *view, outbox);
  }
  if (engine_.Receive(now, message, outbox)) return;
  if (member_.Receive(now, message, outbox)) return;
  control_.Receive(now, message, outbox);
}

void ClientActor::Wake(absl::Time now, Outbox& outbox) {
  if (now >= member_.NextWake()) {
    // A heartbeat may be due.
    member_.progress().set_unconfirmed_step(engine_.FirstUnconfirmed().value());
    member_.progress().set_view_epoch(member_.view()->epoch().value());
  }
  member_.Wake(now, outbox);
  engine_.Wake(now, outbox);
  control_.Wake(now, outbox);
}

absl::Time ClientActor::NextWake() const {
  return std::min({member_.NextWake(), engine_.NextWake(), control_.NextWake()});
}

}  // namespace covey::client
