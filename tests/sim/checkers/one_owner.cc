// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/one_owner.h"

#include "tests/sim/checkers/published_view.h"

namespace covey::sim {
namespace {

Address AddressOf(const proto::Replica& replica) {
  return {NodeId(replica.node()), replica.loop()};
}

ShardId IdOf(const proto::Table& table, const proto::Shard& shard) {
  return {TableId(table.id()), ShardIndex(shard.index())};
}

std::string Describe(const ShardHistory& history) {
  return absl::StrCat("table ", history.shard.table.value(), " shard ", history.shard.index.value(),
                      " generation ", history.generation);
}

}  // namespace

void OneOwner::OnSend(absl::Time, const Message& message) {
  if (const auto reply = ReadShardReply(message)) return CheckAnswer(message, *reply);
  const proto::ClusterView* view = PublishedView(message);
  if (view != nullptr) NoteView(*view);
}

// A server's control loop hands each view on to its data loops.
void OneOwner::OnReceive(absl::Time, absl::string_view, const Message& message) {
  if (!message.envelope.has_watch_view_reply() || message.to().loop == 0) return;
  for (const proto::Table& table : message.envelope.watch_view_reply().view().tables()) {
    for (const proto::Shard& shard : table.shards()) {
      believed_[{message.to(), IdOf(table, shard)}] = shard.chain_epoch();
    }
  }
}

void OneOwner::CheckAnswer(const Message& message, const ShardReply& reply) {
  const Address sender = message.from();
  const auto owners = owners_.find(reply.history);
  if (owners == owners_.end() || owners->second.count(sender) == 0) {
    violations_.Add("one_owner", absl::StrCat("node ", sender.node.value(), " answers for ",
                                              Describe(reply.history), ", which it does not own"));
    return;
  }
  if (const auto lost = lost_with_.find(reply.history);
      lost != lost_with_.end() && lost->second == sender.node.value()) {
    const auto view = believed_.find({sender, reply.history.shard});
    const auto lone =
        view == believed_.end() ? lone_.end() : lone_.find({reply.history, view->second});
    // Under an older view it may count other replicas; then it asks them for durability.
    if (lone != lone_.end() && lone->second == sender.node.value()) {
      violations_.Add("one_owner",
                      absl::StrCat("node ", sender.node.value(), ", which alone held ",
                                   Describe(reply.history), ", answers for it after generation ",
                                   newest_[reply.history.shard].first, " has begun"));
    }
  }
  if (reply.push == nullptr || !reply.push->durable() || reply.push->duplicate()) return;
  const auto believed = believed_.find({sender, reply.history.shard});
  if (believed == believed_.end()) return;
  const auto head = heads_.find({reply.history, believed->second});
  if (head == heads_.end() || head->second == sender) return;
  violations_.Add("one_owner",
                  absl::StrCat("node ", sender.node.value(), " acknowledges a push for ",
                               Describe(reply.history), " under chain epoch ", believed->second,
                               ", whose head is node ", head->second.node.value()));
}

void OneOwner::NoteView(const proto::ClusterView& view) {
  if (view.epoch() <= epoch_) return;
  // After views that were not sent, the holders of each shard are unknown.
  if (view.epoch() != epoch_ + 1) lone_now_.clear();
  epoch_ = view.epoch();
  for (const proto::Table& table : view.tables()) {
    for (const proto::Shard& shard : table.shards()) NoteShard(epoch_, IdOf(table, shard), shard);
  }
}

void OneOwner::NoteShard(uint64_t epoch, ShardId id, const proto::Shard& shard) {
  const ShardHistory history{id, shard.generation()};
  const Chain chain{history, shard.chain_epoch()};
  const auto complain = [&](absl::string_view what) {
    violations_.Add("one_owner", absl::StrCat("epoch ", epoch, ": ", Describe(history),
                                              " chain epoch ", shard.chain_epoch(), ": ", what));
  };
  std::string members;
  std::set<uint64_t> nodes;
  for (const proto::Replica& replica : shard.chain()) {
    absl::StrAppend(&members, " ", replica.node(), ".", replica.loop(),
                    replica.joining() ? "?" : "");
    if (!nodes.insert(replica.node()).second) complain("a server is in the chain twice");
  }
  const auto [known, is_new] = chains_.try_emplace(chain, members);
  if (known->second != members) {
    complain(absl::StrCat("the chain is", members, "; before it was", known->second));
  }
  auto& newest = newest_[id];
  if (shard.generation() > newest.first && lone_now_[id] != 0) {
    lost_with_[{id, newest.first}] = lone_now_[id];
  }
  const std::pair<uint64_t, uint64_t> position{shard.generation(), shard.chain_epoch()};
  if (position.first < newest.first || position.second < newest.second) {
    complain(absl::StrCat("before, generation ", newest.first, " chain epoch ", newest.second));
  }
  newest = position;
  if (shard.chain_size() == 0 || shard.chain(0).joining()) return;
  heads_.try_emplace(chain, AddressOf(shard.chain(0)));
  uint64_t lone = 0;
  int full = 0;
  for (const proto::Replica& replica : shard.chain()) {
    if (!replica.joining() && ++full == 1) lone = replica.node();
  }
  lone_now_[id] = lone_[chain] = full == 1 ? lone : 0;
  owners_[history].insert(AddressOf(shard.chain(0)));
}

}  // namespace covey::sim
