// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "proto/view.pb.h"
#include "tests/sim/checkers/shard_reply.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/workloads/truth/given_gradients.h"

namespace covey::sim {

// Tracks what became of each group's push of a step in each history of a shard: acknowledged,
// durable, discarded as too stale, lost or given up. Says which steps readers must find.
//
// Invariant: a step without which readers were given values because it was presumed to be discarded
// is never said to be applied.
//
// Actor-confined.
class StepFates {
 public:
  struct Options {
    // Some contract of the run does not apply pushes that are too stale.
    bool discards = false;
    // The gradients that each step may have; outlives this. Null: one for each step in which a
    // group pushes.
    const GivenGradients* given = nullptr;
  };
  StepFates(const Options& options, Violations& violations)
      : options_(options), violations_(violations) {}

  // A view of a later epoch.
  void NoteView(const proto::ClusterView& view);
  // `reply`: to a push, read from `message`.
  void NotePushReply(const Message& message, const ShardReply& reply);
  // The group's program stopped waiting for its push of `step`.
  void GaveUp(GroupId group, Step step) { given_up_.insert({group, step}); }

  // Some shard has begun a new history after pushes to it had been acknowledged.
  bool HistoryWasLost() const { return history_was_lost_; }
  // Whether any push of a step has a gradient.
  bool HasGradient(TableId table, GroupId group, Step step) const {
    return options_.given == nullptr || options_.given->IsExpected({group, step, table});
  }
  // Whether the step must be in the values of this history. Exceptions: the step was acknowledged
  // in an earlier history of the shard, found too stale, or given up by its group; its push was
  // never durable and the sender has died; or it was retried when no member that had given a
  // gradient for it was left.
  bool IsOwed(const ShardHistory& history, GroupId group, Step step) const;
  // Whether the history began after the loss of an earlier one, with the group there. It cannot
  // know how far the group had come until the group pushes to it.
  bool HasLost(const ShardHistory& history, GroupId group) const;

  // Steps whose senders may not know yet that they were discarded: the replies to their pushes must
  // say so.
  using Presumed = std::vector<std::pair<GroupId, Step>>;
  // Adds the step to `presumed` when no reply has said yet that it was discarded.
  bool MayBeDiscarded(const ShardHistory& history, GroupId group, Step step,
                      Presumed& presumed) const;
  // A reader was given values without these steps.
  void Presume(const ShardHistory& history, const Presumed& presumed);

 private:
  using GroupStep = std::pair<GroupId, Step>;
  using GroupHistory = std::pair<ShardHistory, GroupId>;

  const Options options_;
  Violations& violations_;
  // Generations in which a server acknowledged the group's push of a step to a shard.
  std::map<std::pair<ShardId, GroupStep>, std::set<uint64_t>> acknowledged_;
  // The nodes whose pushes no server has called durable yet: lost if sender and server die.
  std::map<std::pair<ShardId, GroupStep>, uint64_t> undurable_;
  std::set<uint64_t> departed_;  // nodes
  std::set<GroupStep> given_up_;
  // Too stale to be applied, per history.
  std::map<GroupHistory, std::set<Step>> discarded_;
  std::map<GroupHistory, std::set<Step>> presumed_discarded_;
  std::map<ShardId, uint64_t> first_generation_;  // of those with acknowledged pushes
  // By the views: of each shard, and the epoch of the first view with each group.
  std::map<ShardId, uint64_t> created_;
  std::map<GroupId, uint64_t> formed_;
  bool history_was_lost_ = false;
};

}  // namespace covey::sim
