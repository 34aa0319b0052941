// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cluster/ids.h"
#include "worker/update/local_rounds.h"
#include "worker/update/member_shards.h"
#include "worker/update/part_update.h"
#include "worker/update/round_memory.h"
#include "worker/update/server_link.h"
#include "worker/update/server_update.h"

namespace covey::worker {

// Groups take steps of their own with the inner optimizer, and agree once a round (local SGD,
// Stich 2019; DiLoCo, Douillard et al. 2023). At the end of a round the member pushes, for each
// shard of its part, samples * (values at the start - values at the end) with the round's number as
// the step; the servers' outer optimizer takes the mean over groups as a gradient:
//
//   outer -= rate * mean(start - end)        with an outer rate of 1: outer = mean(end), which is
//                                            parameter averaging
//
// The outer values come in `overlap` steps later, without losing what was learned meanwhile:
//
//   values = outer + (values now - values at the push);   the next round starts at outer
//
// so what was learned since the push is in the next round's change, and counted once. With overlap
// 0 the group waits, and values = outer. Which step takes them in depends on the step alone; an
// answer that is late is waited for.
//
// One table's shards. Actor-confined. Deterministic. Its memory lives until the last answer has
// come.
class LocalSgdPart : public std::enable_shared_from_this<LocalSgdPart> {
 public:
  struct Config {
    LocalRounds rounds;
    MemberShards::Config inner;
    // Of what is pushed at the end of a round.
    PushFormat push;
  };

  // INVALID_ARGUMENT: as MemberShards.
  static absl::StatusOr<std::shared_ptr<LocalSgdPart>> Create(ServerLink& link, PartShards shards,
                                                              const Config& config);

  // As PartUpdate, with the spans of this table's shards. A gradient that is refused fails the
  // call, not the group.
  void Apply(absl::Time now, PartStep step, Outbox& outbox);
  // The servers' values, and on top what was learned since the round started. An answer on its way
  // is waited for and taken in first.
  void Fetch(absl::Time now, PartStep step, Outbox& outbox);
  // Instead of the first fetch's answer: goes on where another member was. What it had pushed is
  // pushed again, under the same identity. The next fetch asks no server.
  void Resume(absl::Time now, const RoundMemory::Round& round, absl::Time deadline, Outbox& outbox);

  const PartShards& shards() const { return shards_; }

 private:
  // A round that has ended, from its push until its outer values are taken in.
  struct Round {
    Step merge_at;
    std::vector<float> change;     // what is pushed
    std::vector<float> pushed_at;  // the values at the push
    std::vector<float> outer;      // the answer
    bool answered = false;
  };
  enum class Call { kApply, kFetch };

  LocalSgdPart(ServerLink& link, PartShards shards, const Config& config, MemberShards inner);

  // The round that has ended with `step`, from `start` to `values`.
  void Push(absl::Time now, Step step, std::span<const float> start, std::span<const float> values,
            uint64_t samples, absl::Time deadline, Outbox& outbox);
  void Pull(absl::Time now, Outbox& outbox);
  // The call under way goes as far as it can without an answer.
  void Continue(absl::Time now, Outbox& outbox);
  void Merge();
  void Rebase();
  void Finish(absl::Time now, const absl::Status& status, Outbox& outbox);

  ServerLink& link_;
  const PartShards shards_;
  const LocalRounds rounds_;
  const WireFormat format_;
  std::vector<float> residual_;  // of pushes; empty = none is kept
  MemberShards inner_;
  std::vector<float> start_;   // of the round under way
  uint64_t samples_ = 0;       // in it
  std::vector<float> pulled_;  // the answer to a fetch
  bool fetched_ = false;
  bool resumed_ = false;  // since the last fetch
  std::optional<Round> round_;
  absl::Status failure_;
  std::optional<PartStep> waiting_;  // the call under way
  Call call_ = Call::kApply;         // which one it is
};

// A part of a bucket whose tables are LOCAL.
class LocalUpdate : public PartUpdate {
 public:
  LocalUpdate(GroupMachine& group, std::vector<std::shared_ptr<LocalSgdPart>> machines)
      : group_(group), machines_(std::move(machines)) {}

  void Apply(absl::Time now, PartStep step, Outbox& outbox) override;
  void Fetch(absl::Time now, PartStep step, Outbox& outbox) override;
  void Resume(absl::Time now, const RoundMemory& memory, const PartRange& part, absl::Time deadline,
              Outbox& outbox) override;

 private:
  static PartStep Narrow(const PartStep& step, const PartRange& range, PartStep::Done done);

  GroupMachine& group_;
  const std::vector<std::shared_ptr<LocalSgdPart>> machines_;
};

}  // namespace covey::worker
