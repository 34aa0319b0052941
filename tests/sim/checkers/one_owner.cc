#include "tests/sim/checkers/one_owner.h"

#include "tests/sim/checkers/published_view.h"

namespace covey::sim {

void OneOwner::OnSend(absl::Time, const Message& message) {
  if (const auto reply = ReadShardReply(message)) {
    const auto owner = owners_.find(reply->history);
    if (owner == owners_.end() || owner->second != message.from()) {
      violations_.Add("one_owner",
                      absl::StrCat("node ", message.from().node.value(), " answers for table ",
                                   reply->history.shard.table.value(), " shard ",
                                   reply->history.shard.index.value(), " generation ",
                                   reply->history.generation, ", which it does not own"));
    }
    return;
  }
  const proto::ClusterView* view = PublishedView(message);
  if (view == nullptr || view->epoch() == epoch_) return;
  epoch_ = view->epoch();
  for (const proto::Table& table : view->tables()) {
    for (const proto::Shard& shard : table.shards()) {
      if (shard.chain_size() == 0) continue;
      const ShardId id{TableId(table.id()), ShardIndex(shard.index())};
      const Address owner{NodeId(shard.chain(0).node()), shard.chain(0).loop()};
      const auto [known, is_new] = owners_.try_emplace({id, shard.generation()}, owner);
      uint64_t& generation = generations_[id];
      if (known->second != owner || shard.generation() < generation) {
        violations_.Add("one_owner",
                        absl::StrCat("epoch ", epoch_, ": table ", table.id(), " shard ",
                                     shard.index(), " generation ", shard.generation(),
                                     " is on node ", owner.node.value(), "; before, generation ",
                                     generation, " was on node ", known->second.node.value()));
      }
      generation = shard.generation();
    }
  }
}

}  // namespace covey::sim
