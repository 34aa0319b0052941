// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placement/chain_editor.h"

#include <algorithm>

#include "common/base/planted_bug.h"
#include "scheduler/placement/chain_members.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {

void ChainEditor::Count(ShardChange::Kind kind, NodeId node, const std::string& from) {
  ++counts_.shards[{.kind = kind, .node = NameOf(view_, node), .from = from}];
}

void ChainEditor::RemoveDeparted(const proto::Shard& shard) {
  const auto is_alive = [&](const proto::Replica& replica) {
    return loads_.Find(replica.node()) != nullptr;
  };
  if (std::all_of(shard.chain().begin(), shard.chain().end(), is_alive)) return;
  const NodeId head(shard.chain(0).node());
  const bool is_lost =
      std::none_of(shard.chain().begin(), shard.chain().end(), [&](const proto::Replica& r) {
        return is_alive(r) && (IsFull(r) || Planted(PlantedBug::kPromoteJoiningReplica));
      });
  if (is_lost) {
    if (shard.chain_size() == 1) return;
    Count(ShardChange::Kind::kNoFullReplica, head);
    auto& chain = *Edit(shard).mutable_chain();
    chain.erase(chain.begin() + 1, chain.end());
    return;
  }
  for (const proto::Replica& replica : shard.chain()) {
    if (!is_alive(replica)) Count(ShardChange::Kind::kDepartedMember, NodeId(replica.node()));
  }
  auto& chain = *Edit(shard).mutable_chain();
  chain.erase(std::remove_if(chain.begin(), chain.end(),
                             [&](const proto::Replica& r) { return !is_alive(r); }),
              chain.end());
  if (Planted(PlantedBug::kPromoteJoiningReplica)) chain[0].set_joining(false);
  const NodeId new_head(chain[0].node());
  if (new_head != head) Count(ShardChange::Kind::kPromoted, new_head);
}

void ChainEditor::Erase(const proto::Shard& shard, int position) {
  proto::Shard& edited = Edit(shard);
  edited.mutable_chain()->erase(edited.chain().begin() + position);
}

void ChainEditor::RemoveAt(const proto::Shard& shard, int position, ShardChange::Kind why) {
  Count(why, NodeId(shard.chain(position).node()));
  Erase(shard, position);
}

const proto::Replica& ChainEditor::Join(const proto::Shard& shard,
                                        const ServerLoads::Server& server) {
  proto::Replica& replica = *Edit(shard).add_chain();
  replica.set_node(server.node.value());
  replica.set_loop(server.LightestLoop());
  replica.set_joining(true);
  return replica;
}

}  // namespace covey::scheduler
