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

// Groups take local steps with the inner optimizer, and average once a round (local SGD, Stich
// 2019; DiLoCo, Douillard et al. 2023). At the end of a round the member pushes, for each shard of
// its part, samples * (values at the start - values at the end) with the round's number as the
// step; the servers' outer optimizer takes the mean over groups as a gradient:
//
//   outer -= rate * mean(start - end)        with an outer rate of 1: outer = mean(end), which is
//                                            parameter averaging
//
// The outer values are adopted `overlap` steps later, without losing what was learned meanwhile:
//
//   values = outer + (values now - values at the push);   the next round starts at outer
//
// so the steps since the push are in the next round's change, and counted once. With overlap 0 the
// group waits, and values = outer. The step that adopts them depends on step numbers alone; a late
// reply is waited for.
//
// One table's shards. Actor-confined. Deterministic. Its memory lives until the last reply has
// arrived.
class LocalSgdPart : public std::enable_shared_from_this<LocalSgdPart> {
 public:
  struct Config {
    LocalRounds rounds;
    MemberShards::Config inner;
  };

  // INVALID_ARGUMENT: as MemberShards.
  static absl::StatusOr<std::shared_ptr<LocalSgdPart>> Create(ServerLink& link, PartShards shards,
                                                              const Config& config);

  // As PartUpdate, with the spans of this table's shards. A refused gradient fails the call, not
  // the group.
  void Apply(absl::Time now, PartStep step, Outbox& outbox);
  // Fetches the servers' values, and adds what was learned since the round started. A pending reply
  // is waited for and adopted first.
  void Fetch(absl::Time now, PartStep step, Outbox& outbox);
  // Replaces the first fetch: continues from another member's state. That member's pending push is
  // pushed again, under the same identity. The next fetch asks no server.
  void Resume(absl::Time now, const RoundMemory::Round& round, absl::Time deadline, Outbox& outbox);

  const PartShards& shards() const { return shards_; }

 private:
  // A round that has ended, from its push until its outer values are adopted.
  struct Round {
    Step merge_at;
    std::vector<float> change;     // the pushed change
    std::vector<float> pushed_at;  // the values at the push
    std::vector<float> outer;      // the reply
    bool answered = false;
  };
  enum class Call { kApply, kFetch };

  LocalSgdPart(ServerLink& link, PartShards shards, const Config& config, MemberShards inner);

  // Pushes the round that ended at `step`, with its change from `start` to `values`.
  void Push(absl::Time now, Step step, std::span<const float> start, std::span<const float> values,
            uint64_t samples, absl::Time deadline, Outbox& outbox);
  void Pull(absl::Time now, Outbox& outbox);
  // Advances the pending call as far as it can without a reply.
  void Continue(absl::Time now, Outbox& outbox);
  void Merge();
  void Rebase();
  void Finish(absl::Time now, const absl::Status& status, Outbox& outbox);

  ServerLink& link_;
  const PartShards shards_;
  const LocalRounds rounds_;
  MemberShards inner_;
  std::vector<float> start_;   // of the current round
  uint64_t samples_ = 0;       // in it
  std::vector<float> pulled_;  // the reply to a fetch
  bool fetched_ = false;
  bool resumed_ = false;  // since the last fetch
  std::optional<Round> round_;
  absl::Status failure_;
  std::optional<PartStep> waiting_;  // the pending call
  Call call_ = Call::kApply;         // the kind of `waiting_`
};

// A part of a bucket whose tables are LOCAL.
class LocalUpdate : public PartUpdate {
 public:
  LocalUpdate(Communicator& group, std::vector<std::shared_ptr<LocalSgdPart>> machines)
      : group_(group), machines_(std::move(machines)) {}

  void Apply(absl::Time now, PartStep step, Outbox& outbox) override;
  void Fetch(absl::Time now, PartStep step, Outbox& outbox) override;
  void Resume(absl::Time now, const RoundMemory& memory, const PartRange& part, absl::Time deadline,
              Outbox& outbox) override;

 private:
  static PartStep Narrow(const PartStep& step, const PartRange& range, PartStep::Done done);

  Communicator& group_;
  const std::vector<std::shared_ptr<LocalSgdPart>> machines_;
};

}  // namespace covey::worker
