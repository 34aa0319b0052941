// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/equal_replicas.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace covey::sim {
namespace {

using ByPlace = std::map<std::pair<ShardId, uint64_t>, const ReplicaSnapshot*>;

ByPlace Index(const std::vector<ReplicaSnapshot>& replicas) {
  ByPlace by_place;
  for (const ReplicaSnapshot& replica : replicas) {
    by_place[{replica.shard, replica.node.value()}] = &replica;
  }
  return by_place;
}

std::string Where(ShardId shard) {
  return absl::StrCat("table ", shard.table.value(), " shard ", shard.index.value());
}

std::string Describe(const ReplicaSnapshot* replica) {
  if (replica == nullptr) return "a server that does not run";
  if (!replica->has_content) return absl::StrCat(replica->server, " nothing");
  return absl::StrCat(replica->server, " record ", replica->index, " version ", replica->version,
                      " digest ", absl::Hex(replica->digest));
}

bool AreEqual(const ReplicaSnapshot* a, const ReplicaSnapshot* b) {
  return a != nullptr && b != nullptr && a->has_content && b->has_content && a->index == b->index &&
         a->version == b->version && a->digest == b->digest;
}

}  // namespace

void EqualReplicas::Look(const proto::ClusterView& view,
                         const std::vector<ReplicaSnapshot>& replicas) {
  const ByPlace by_place = Index(replicas);
  for (const proto::Table& table : view.tables()) {
    for (const proto::Shard& shard : table.shards()) {
      const ShardId id{TableId(table.id()), ShardIndex(shard.index())};
      for (int i = 0; i < shard.chain_size() && !shard.chain(i).joining(); ++i) {
        const auto replica = by_place.find({id, shard.chain(i).node()});
        if (replica != by_place.end()) LookAt(shard, i == 0, *replica->second);
      }
    }
  }
}

void EqualReplicas::LookAt(const proto::Shard& shard, bool is_head,
                           const ReplicaSnapshot& replica) {
  const bool follows = replica.has_content && replica.generation == shard.generation() &&
                       replica.chain_epoch == shard.chain_epoch();
  if (!follows) return;
  const ShardHistory history{replica.shard, replica.generation};
  const Seen seen{.server = replica.server, .digest = replica.digest};
  const auto [first, is_new] =
      of_chain_.try_emplace({history, replica.chain_epoch, replica.index}, seen);
  if (!is_new) Compare(first->second, replica);
  const auto known = durable_.find({history, replica.index});
  if (known != durable_.end()) {
    Compare(known->second, replica);
  } else if (is_head && replica.durable == replica.index) {
    durable_.emplace(std::tuple(history, replica.index), seen);
  }
}

void EqualReplicas::Compare(const Seen& seen, const ReplicaSnapshot& replica) {
  if (seen.digest == replica.digest) return;
  violations_.Add("equal_replicas",
                  absl::StrCat(Where(replica.shard), ": at record ", replica.index, " of epoch ",
                               replica.chain_epoch, " ", replica.server, " does not hold what ",
                               seen.server, " held"));
}

std::string EqualReplicas::WhyUnequal(const proto::ClusterView& view,
                                      const std::vector<ReplicaSnapshot>& replicas) {
  const ByPlace by_place = Index(replicas);
  const auto find = [&](ShardId id, const proto::Replica& replica) {
    const auto found = by_place.find({id, replica.node()});
    return found == by_place.end() ? nullptr : found->second;
  };
  for (const proto::Table& table : view.tables()) {
    for (const proto::Shard& shard : table.shards()) {
      const ShardId id{TableId(table.id()), ShardIndex(shard.index())};
      for (int i = 1; i < shard.chain_size() && !shard.chain(i).joining(); ++i) {
        const ReplicaSnapshot* head = find(id, shard.chain(0));
        const ReplicaSnapshot* other = find(id, shard.chain(i));
        if (AreEqual(head, other)) continue;
        return absl::StrCat(Where(id), ": the head, ", Describe(head), "; in its chain, ",
                            Describe(other));
      }
    }
  }
  return "";
}

}  // namespace covey::sim
