// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/contract/contract.h"
#include "common/net/message.h"
#include "tests/sim/checkers/shard_reply.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/workloads/truth/loop_views.h"
#include "tests/sim/workloads/truth/step_elements.h"
#include "tests/sim/workloads/truth/step_fates.h"

namespace covey::sim {

// Checks that readers get the steps that their bounds ask for.
//
// Invariants, for every reply with values to a reader that has finished step t:
//  - of every group that contracts wait for, all steps from its first one up to the contract's
//    bound are in the values (bsp: t, ssp(s): t - s, or the reader's own max_staleness).
//    Exceptions: the step is not owed (StepFates::IsOwed), or was discarded; or, where pushes are
//    applied on arrival, the shard has lost an earlier history in which the group may have pushed
//    (StepFates::HasLost), and has received no push of the group since;
//  - under bsp and ssp the reader's own steps up to t are in, with the same exceptions (and not
//    under bsp when the reader asked for older values);
//  - under local some group's round t or a later one is in, unless the reader's own is not owed.
//
// The contract and the live groups are those of any view that the answering loop had while it had
// the request: a reply that was found fresh enough may wait until it is durable. Where the bound
// depends on the groups, it is no view older than the reader's.
//
// Actor-confined. Everything that it refers to outlives it.
class ReadBounds {
 public:
  ReadBounds(const StepElements& elements, StepFates& fates, Violations& violations)
      : elements_(elements), fates_(fates), violations_(violations) {}

  // `message`: a push or pull request that has left its sender.
  void NoteRequest(const Message& message);
  // Any message that is about to be given to a process.
  void OnReceive(absl::Time now, const Message& message) { loops_.OnReceive(now, message); }
  // `reply`: with values, read from `message`, which has left its sender.
  void Check(const Message& message, const ShardReply& reply);

 private:
  struct Read {
    GroupId group;
    Step step;
    std::optional<uint64_t> max_staleness;
    Epoch view;  // the reader's, at its first try
  };
  // Node and request id, which the reply will carry.
  using RequestKey = std::pair<uint64_t, uint64_t>;

  // Whether the bound depends on the groups.
  static bool AsksForSteps(const ShardReply& reply, const Read& read, const LoopViews::View& view);
  // Describes the missing steps; empty when none are missing, provided that the steps `presumed`
  // were discarded.
  std::string Missing(const ShardReply& reply, const Read& read, const LoopViews::View& view,
                      StepFates::Presumed& presumed) const;
  std::string MissingStep(const ShardReply& reply, const Read& read, const Contract& contract,
                          const LoopViews::View& view, StepFates::Presumed& presumed) const;
  std::string MissingRound(const ShardReply& reply, const Read& read) const;
  // The shard has lost what it had of the group, and none of the group's pushes is in its values.
  bool MayBeUnheardOf(const ShardReply& reply, const Contract& contract, GroupId group) const;

  const StepElements& elements_;
  StepFates& fates_;
  Violations& violations_;
  LoopViews loops_;
  std::map<RequestKey, Read> reads_;
};

}  // namespace covey::sim
