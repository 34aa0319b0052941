// SPDX-License-Identifier: Apache-2.0
#include "server/replication/chain_place.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/planted_bug.h"
#include "common/cluster/view.h"

namespace covey::server {

bool HasLastFull(const proto::Shard& shard, const Address& self) {
  const auto last = std::find_if(shard.chain().rbegin(), shard.chain().rend(),
                                 [](const proto::Replica& replica) { return !replica.joining(); });
  return last != shard.chain().rend() && NodeId(last->node()) == self.node &&
         last->loop() == self.loop;
}

bool ChainPlace::Follows(const proto::Shard& shard) const {
  return position_ >= 0 && chain_.chain_epoch() == shard.chain_epoch();
}

bool ChainPlace::Follow(const proto::Shard& shard, const Address& self) {
  const bool was_head = is_head();
  self_ = self;
  position_ = *ClusterView::PositionInChain(shard, self);
  if (!was_head) head_since_ = Epoch(shard.chain_epoch());
  absl::btree_set<NodeId> in_front;
  for (int i = 0; i < position_; ++i) in_front.insert(NodeId(shard.chain(i).node()));
  const bool overtaken =
      !std::includes(in_front_.begin(), in_front_.end(), in_front.begin(), in_front.end());
  in_front_ = std::move(in_front);
  predecessor_ = is_head() ? Address{}
                           : Address{NodeId(shard.chain(position_ - 1).node()),
                                     shard.chain(position_ - 1).loop()};
  chain_.set_table(id_.table.value());
  chain_.set_shard(id_.index.value());
  chain_.set_generation(generation_);
  chain_.set_chain_epoch(shard.chain_epoch());
  return overtaken;
}

bool ChainPlace::Admits(const Message& message, const proto::ChainPosition& chain,
                        Outbox& outbox) const {
  if (chain.chain_epoch() > chain_epoch()) return false;
  if (chain.chain_epoch() == chain_epoch() || Planted(PlantedBug::kAcceptOldEpoch)) return true;
  Refuse(message, outbox);
  return false;
}

void ChainPlace::Refuse(const Message& message, Outbox& outbox) const {
  Message reply = MakeReply(message);
  *reply.envelope.mutable_replicate_reply()->mutable_chain() = chain_;
  SetStatus(absl::AbortedError(absl::StrCat("the chain is that of epoch ", chain_epoch(),
                                            " now; follow the newer view")),
            reply);
  outbox.Send(std::move(reply));
}

proto::ReplicaReport ChainPlace::MakeReport(proto::ReplicaReport::Kind kind, NodeId node,
                                            absl::string_view reason) const {
  proto::ReplicaReport report;
  report.set_table(chain_.table());
  report.set_shard(chain_.shard());
  report.set_generation(chain_.generation());
  report.set_chain_epoch(chain_.chain_epoch());
  report.set_node(node.value());
  report.set_kind(kind);
  report.set_reason(reason.data(), reason.size());
  return report;
}

}  // namespace covey::server
