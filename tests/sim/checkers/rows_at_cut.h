// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/cluster/ids.h"
#include "common/store/folder.h"
#include "proto/snapshot.pb.h"
#include "tests/sim/checkers/shard_reply.h"
#include "tests/sim/checkers/step_rows.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// Groups push steps to a sparse table as in step_rows.h. Its rows may be made late, and be evicted
// and made again.
//
// Invariants, of each row in a complete snapshot, and of each row of a server at the end:
//  - it holds nothing but pushes with its key, each once, and none beyond the cut;
//  - of pushes of which a server has said at which version they were applied it holds all from some
//    version on up to that of the shard, and none of an earlier or a later version;
//  - a push has its share of the pushes of its update, or of those of them that hold the row, where
//    the table says so, and no other;
//  - where only the number of updates decides on admission, it lacks the first of them only; where
//    every row is made at once, and stays, it lacks none.
// A job that continues a snapshot goes on with what it held; of a shard that has lost its content
// meanwhile, only pushes since then have versions.
//
// Actor-confined.
class RowsAtCut : public Observer {
 public:
  RowsAtCut(const StepValues& values, Violations& violations)
      : values_(values), violations_(violations) {}

  void OnSend(absl::Time now, const Message& message) override;

  // The manifest of this snapshot has been published.
  void Published(Folder& store, const std::string& folder);
  // The next job continues the snapshot.
  void StartOver(Folder& store, const std::string& folder);

  using Rows = std::map<uint64_t, std::vector<float>>;
  // What a shard of the table held at a version. `where` and `cut` as of the snapshot; `cut` is
  // empty of a server.
  void Check(const std::string& where, const proto::Table& table, const ShardHistory& history,
             uint64_t version, const std::map<GroupId, Step>& cut, const Rows& rows);
  // Rows that were checked so far.
  uint64_t checked() const { return checked_; }

 private:
  using GroupStep = std::pair<GroupId, Step>;
  // A push with the key of a row.
  struct Pushed {
    GroupStep step;
    size_t column;
    uint64_t version;  // at which it was applied; 0 = unknown
  };

  // Pushes by the version of their update, as far as it is known.
  struct Pushes {
    std::map<uint64_t, size_t> of_version;
    size_t unknown = 0;
    size_t all = 0;

    void Add(uint64_t version) {
      ++(version == 0 ? unknown : of_version[version]);
      ++all;
    }
  };
  struct PushesOfShard {
    Pushes pushes;
    std::map<uint64_t, std::vector<Pushed>> by_key;
  };

  PushesOfShard PushesOf(const proto::Shard& shard, const ShardHistory& history) const;
  // Why the row is wrong; empty when it is right.
  std::string WhyWrong(const proto::TableSpec& spec, uint64_t version,
                       const std::map<GroupId, Step>& cut, const Pushes& of_shard,
                       const std::vector<Pushed>& pushes, const std::vector<float>& row) const;
  // In a row that holds some of the pushes; the pushes of an update are among `sharing`.
  static std::string WhyWrongShare(const Pushes& sharing, const std::vector<Pushed>& pushes,
                                   const std::vector<float>& row);

  const StepValues values_;
  Violations& violations_;
  PushedElements pushed_elements_;
  std::map<GroupStep, uint64_t> elements_;
  std::map<ShardHistory, std::map<GroupStep, uint64_t>> versions_;
  // What the shards of the present job began with; of their first histories.
  std::map<ShardId, std::map<GroupStep, uint64_t>> begun_with_;
  std::map<ShardId, uint64_t> first_generation_;
  uint64_t checked_ = 0;
};

}  // namespace covey::sim
