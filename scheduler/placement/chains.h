#pragma once

#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "proto/log.pb.h"
#include "proto/scheduler.pb.h"
#include "scheduler/config.h"
#include "scheduler/placement/chain_balance.h"
#include "scheduler/placement/hosting.h"

namespace covey::scheduler {

// Which servers hold each shard, in which order. Every change of placement is an edit of a chain:
//
//   a server departs   its replicas are out at once; the next full one is head. Without a full one
//                      left the content is lost: the shard begins anew (its generation) on a
//                      server of the same rank, or after Config::replacement_wait on others; in
//                      any case after the lease of the departed one
//   a chain is short   a replica joins at its end; full when its predecessor reports READY
//   a server drains,   a replica joins; once it is full, the one that is to go is out
//   or loads differ
//   UNREACHABLE, UNFIT that replica is out. The last full one is never out for being unreachable;
//                      when it is unfit, nobody has the content: the shard begins anew at once, on
//                      others if there are any
//
// Plans follow from the view alone, so a restarted scheduler goes on with what was under way.
//
// Invariants:
//  1. A full replica leaves a live server's chain only when as many full ones as the table's target
//     are left, or when it is reported. The target is the table's replicas, at most the number of
//     servers that do not drain, at least 1.
//  2. Members keep their order, for a predecessor knows everything that its successors know, and
//     not the other way round. Whoever joins comes last; one at a time in each chain.
//  3. Each edit sets chain_epoch to an epoch that nobody has seen.
//  4. Repair comes before balance. Each move of balance lessens one measure of imbalance
//     (chain_balance.h), so balance ends.
//
// What servers owe: whoever reports READY has waited for the replica's acknowledgement, as for a
// full member's, from before the report on until it knows a newer chain. So nothing is
// acknowledged that the replica would miss as a head, although the reporter hears of the change
// later than others.
//
// Edits the view in `state`, which outlives it. Actor-confined, deterministic.
class Chains {
 public:
  Chains(const Config& config, proto::LogRecord& state) : config_(config), state_(state) {}

  // Servers, their draining, or tables have changed: Settle has to look at everything.
  void Touch() { due_ = true; }

  // A departed server may serve what it alone holds until then.
  void Fence(NodeId server, absl::Time until) { fenced_until_[server] = until; }

  // What a server says of a replica. Ignored when it speaks of another life or another chain of the
  // shard, or when the sender stands neither before the replica nor is it. `published`: as below.
  // True: it has changed the chain, and Settle tells of it.
  bool Report(absl::Time now, NodeId sender, const proto::ReplicaReport& report, Epoch published);

  // Makes the edits that are due. The epoch is raised once, if it still is `published`: the newest
  // one that may be known outside. Returns the decision, with that of reports before it; "" =
  // nothing has changed. O(shards), so whoever calls it lets reports come together.
  std::string Settle(absl::Time now, Epoch published);
  // When Settle has to be called although nothing happens.
  absl::Time NextSettle() const { return due_ ? absl::InfinitePast() : next_; }

  // Replicas that may join on one server at a time: its network and its optimizer are shared with
  // the pushes that go on; more would not be full any sooner.
  static constexpr uint32_t kJoiningPerServerMax = 4;

 private:
  struct Needy;
  struct Spoilt {
    NodeId node;
    uint64_t generation = 0;
  };

  void Change(proto::Shard& shard, Epoch published);
  void Note(absl::string_view what, NodeId node, uint64_t shards = 1);
  std::string TakeNotes();
  uint32_t TargetOf(const proto::Table& table, const Hosting& hosting) const;
  void Avoid(Hosting& hosting, absl::Time now);

  // Members that have departed or must go, and what is more than the target.
  void TakeOut(const Hosting& hosting, Epoch published);
  void RemoveDeparted(proto::Shard& shard, const Hosting& hosting, Epoch published);
  void Trim(ShardId id, proto::Shard& shard, uint32_t target, const Hosting& hosting,
            Epoch published);
  // Counts each chain as it will be when what is under way has ended.
  void Load(Hosting& hosting);
  // Begins what is lost anew and fills what is short. True: nothing is either.
  bool Repair(absl::Time now, Hosting& hosting, Epoch published);
  // False: it has to wait. The heir of a shard whose last holder has departed, and what the event
  // says of it.
  bool BeginAnew(absl::Time now, ShardId id, proto::Shard& shard, uint32_t target, Hosting& hosting,
                 Epoch published);
  Hosting::Server* HeirOf(absl::Time now, NodeId lost, Hosting& hosting);
  // The only full replica was found unfit, so nobody holds the content.
  bool IsSpoilt(ShardId id, const proto::Shard& shard) const;
  // A joining replica that the chain does not need: somebody leaves for it, if that helps.
  void KeepMove(ShardId id, proto::Shard& shard, Hosting& hosting, Epoch published);
  void Fill(proto::Shard& shard, Hosting& hosting, Epoch published);
  void Balance(Hosting& hosting, Epoch published);

  const Config& config_;
  proto::LogRecord& state_;
  bool due_ = true;
  absl::Time next_ = absl::InfiniteFuture();
  // Who goes when the joining replica of a chain is full, where the chain would not be too short.
  Leaving leaving_;
  // Since when shards wait for a server of the rank of this departed one.
  std::map<NodeId, absl::Time> lost_since_;
  // Shards whose only full replica is unfit: which one, and in which generation. A server repeats
  // its report until the shard is another, so a restarted scheduler hears of it again.
  std::map<ShardId, Spoilt> spoilt_;
  // Departed servers whose lease has not ended.
  std::map<NodeId, absl::Time> fenced_until_;
  // Servers that were reported: no new replicas before this.
  std::map<NodeId, absl::Time> avoided_until_;
  // Phrases about shards with their counts, of the decision in the making.
  std::map<std::string, uint64_t> notes_;
};

}  // namespace covey::scheduler
