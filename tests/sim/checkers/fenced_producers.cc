// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/fenced_producers.h"

namespace covey::sim {

void FencedProducers::OnSend(absl::Time now, const Message& message) {
  const auto reply = ReadShardReply(message);
  if (!reply || reply->push == nullptr || reply->push->duplicate() || !reply->push->durable()) {
    return;
  }
  const proto::PushId& id = reply->push->id();
  if (id.producer_kind() != proto::PushId::GROUP) return;
  Fence& fence = fences_[{reply->history, id.producer()}];
  const auto arrived = arrived_.find(
      {message.from(), message.to().node.value(), message.envelope.header().request_id()});
  const bool came_later = arrived == arrived_.end() || arrived->second > fence.since;
  if (id.producer_incarnation() < fence.generation && came_later) {
    violations_.Add(
        "fenced_producers",
        absl::StrCat("shard ", id.shard(), " took a push of group ", id.producer(), " generation ",
                     id.producer_incarnation(), " after one of ", fence.generation));
  }
  if (id.producer_incarnation() > fence.generation) {
    fence = {.generation = id.producer_incarnation(), .since = now};
  }
}

void FencedProducers::OnReceive(absl::Time now, absl::string_view, const Message& message) {
  if (!message.envelope.has_push_request()) return;
  arrived_.try_emplace(
      {message.to(), message.from().node.value(), message.envelope.header().request_id()}, now);
}

}  // namespace covey::sim
