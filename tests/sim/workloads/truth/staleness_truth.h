// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/cluster/ids.h"
#include "common/contract/contract.h"
#include "tests/sim/checkers/shard_reply.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"
#include "tests/sim/workloads/truth/given_gradients.h"

namespace covey::sim {

// Tracks which steps of which groups are in the values that readers get. Every step of every group
// owns one element of each shard and adds to it, so the values show which steps they contain; the
// claims of replies are checked against them.
//
// Invariants, for every reply with values to a reader that has finished step t:
//  - of every group that contracts wait for, all steps from its first one up to the contract's
//    bound are in the values (bsp: t, ssp(s): t - s, or the reader's own max_staleness).
//    Exceptions: the step was acknowledged in an earlier history of the shard, lost with its
//    server, found too stale, or given up by its group; its push was never durable and the sender
//    has died; or it was retried when no member that had given a gradient for it was left;
//  - under bsp and ssp the reader's own steps up to t are in, with the same exceptions (and not
//    under bsp when the reader asked for older values);
//  - under local some group's round t or a later one is in, unless the reader's own is not owed;
//  - no step is in twice. Where pushes are averaged, an element holds its share of one update. A
//    gradient that was given for this step and reported under no other may have its share of
//    another step's update;
//  - the clock vector names exactly the highest step of each group that is in, was too stale, or
//    had no gradient;
//  - the values that a reader gets from one history never go back.
//
// The contract and the live groups are those of any view that the answering loop had while it had
// the request: a reply that was found fresh enough may wait until it is durable.
class StalenessTruth : public Observer {
 public:
  struct Options {
    // Steps are numbered from 1; element of (group at position p, step t): p * steps + t - 1.
    uint64_t steps = 0;
    // Some contract of the run combines several pushes into one update.
    bool averages = false;
    // Such an update weights pushes by samples, and the pushes differ in their samples.
    bool uneven = false;
    // Gradients travel in a format that rounds them.
    bool rounded = false;
    // Some contract of the run does not apply pushes that are too stale.
    bool discards = false;
    // The gradients that each step may have; outlives this. Null: one for each step in which a
    // group pushes.
    const GivenGradients* given = nullptr;
  };
  StalenessTruth(Violations& violations, const Options& options)
      : violations_(violations), options_(options), steps_(options.steps) {}

  void OnSend(absl::Time now, const Message& message) override;
  void OnReceive(absl::Time now, absl::string_view receiver, const Message& message) override;

  // The group's program stopped waiting for its push of `step`.
  void GaveUp(GroupId group, Step step) { given_up_.insert({group, step}); }
  // Position of a group in the order of all group ids.
  uint64_t PositionOf(GroupId group) const;
  uint64_t ElementOf(GroupId group, Step step) const {
    return PositionOf(group) * steps_ + step.value() - 1;
  }
  // Some shard has begun a new history after pushes to it had been acknowledged.
  bool HistoryWasLost() const { return history_was_lost_; }
  uint64_t reads() const { return reads_; }

 private:
  // A read, by the node and request id that its reply will carry.
  struct Read {
    GroupId group;
    Step step;
    std::optional<uint64_t> max_staleness;
  };
  using RequestKey = std::pair<uint64_t, uint64_t>;
  // The view of one loop of a server.
  struct LoopView {
    absl::Time until = absl::InfiniteFuture();  // when it was replaced
    std::map<TableId, Contract> contracts;
    std::vector<LiveGroup> live;
  };
  struct LastRead {
    uint64_t request = 0;
    uint64_t generation = 0;
    std::vector<float> values;
    uint64_t version = 0;
  };

  void NoteView(const proto::ClusterView& view);
  void NoteRead(const Message& message);
  void NoteLoopView(absl::Time now, const Message& message);
  void CheckBound(const Message& message, const ShardReply& reply, const Read& read);
  // Describes the missing steps; empty when none are missing, provided that the steps `presumed`
  // were discarded.
  using Presumed = std::vector<std::pair<GroupId, Step>>;
  std::string Missing(const ShardReply& reply, const Read& read, const LoopView& view,
                      Presumed& presumed);
  std::string MissingStep(const ShardReply& reply, const Read& read, const Contract& contract,
                          const LoopView& view, Presumed& presumed);
  std::string MissingRound(const ShardReply& reply, const Read& read);
  void CheckElements(const ShardReply& reply);
  // Whether a step that was applied exactly once can result in this value.
  bool IsOnce(float value, const GivenGradients::Place& place) const;
  void CheckClocks(const ShardReply& reply);
  // The step must not be missing from the values of this history.
  bool IsOwed(const ShardHistory& history, GroupId group, Step step) const;
  // The step's sender may not know yet that it was discarded; the reply to its push must say so.
  bool MayBeDiscarded(const ShardHistory& history, GroupId group, Step step,
                      Presumed& presumed) const;
  bool Includes(const ShardReply& reply, GroupId group, uint64_t step) const;
  // Whether any push of a step has a gradient.
  bool HasGradient(TableId table, GroupId group, Step step) const {
    return options_.given == nullptr || options_.given->IsExpected({group, step, table});
  }

  Violations& violations_;
  const Options options_;
  const uint64_t steps_;

  uint64_t epoch_ = 0;
  std::vector<GroupId> groups_;
  std::map<Address, std::vector<LoopView>> loop_views_;  // oldest first
  std::map<std::pair<Address, RequestKey>, absl::Time> arrived_;
  std::map<RequestKey, Read> requests_;
  // Generations in which a server acknowledged the group's push of a step to a shard.
  std::map<std::pair<ShardId, std::pair<GroupId, Step>>, std::set<uint64_t>> acknowledged_;
  // The nodes whose pushes no server has called durable yet: lost if sender and server die.
  std::map<std::pair<ShardId, std::pair<GroupId, Step>>, uint64_t> undurable_;
  std::set<uint64_t> departed_;  // nodes
  std::set<std::pair<GroupId, Step>> given_up_;
  // Too stale to be applied, per history.
  std::map<std::pair<ShardHistory, GroupId>, std::set<Step>> discarded_;
  std::map<std::pair<ShardHistory, GroupId>, std::set<Step>> presumed_discarded_;
  std::map<std::pair<uint64_t, ShardId>, LastRead> last_read_;  // by node
  std::map<ShardId, uint64_t> first_generation_;                // of those with acknowledged pushes
  bool history_was_lost_ = false;
  uint64_t reads_ = 0;
};

}  // namespace covey::sim
