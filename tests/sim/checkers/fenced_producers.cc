#include "tests/sim/checkers/fenced_producers.h"

#include <algorithm>

namespace covey::sim {

void FencedProducers::OnSend(absl::Time, const Message& message) {
  const auto reply = ReadShardReply(message);
  if (!reply || reply->push == nullptr || reply->push->duplicate() || !reply->push->durable()) {
    return;
  }
  const proto::PushId& id = reply->push->id();
  if (id.producer_kind() != proto::PushId::GROUP) return;
  uint64_t& generation = generations_[{reply->history, id.producer()}];
  if (id.producer_incarnation() < generation) {
    violations_.Add(
        "fenced_producers",
        absl::StrCat("shard ", id.shard(), " took a push of group ", id.producer(), " generation ",
                     id.producer_incarnation(), " after one of ", generation));
  }
  generation = std::max(generation, id.producer_incarnation());
}

}  // namespace covey::sim
