// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/optimizer/learning_rate.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/row_optimizer.h"

namespace covey::worker {

// The rows of a LOCAL sparse table with which a worker takes the steps of a round: as they were
// when it began, and as the worker's own steps have left them. A row that comes again in a later
// round has kept the state of the inner optimizer, if there was room for it meanwhile.
//
// Memory: as many floats per row as a row and the optimizer's state have, one row more, and about
// 50 bytes; for Config::rows_max rows at most. Actor-confined. Deterministic: rows that make room
// are chosen by round and key.
class RoundRows {
 public:
  struct Config {
    OptimizerConfig optimizer;
    LearningRateConfig learning_rate;
    size_t width = 0;     // at least 1
    size_t rows_max = 0;  // at least 1
    bool refuses_non_finite = true;
  };

  // INVALID_ARGUMENT: as RowOptimizer::Create and LearningRateSchedule::Create.
  static absl::StatusOr<RoundRows> Create(const Config& config);

  // Appends the keys that have no row in this round.
  void FindMissing(std::span<const uint64_t> keys, std::vector<uint64_t>& missing) const;
  // INVALID_ARGUMENT: the round would hold more than rows_max rows.
  absl::Status CheckRoom(size_t missing) const;
  // Takes in rows as they are at the beginning of the round. Preconditions (checked): there is room
  // for the keys, which come once each and have no row in this round, and a row for each.
  void Begin(std::span<const uint64_t> keys, std::span<const float> rows);
  // The present row of a key. Precondition (checked): it has one in this round.
  std::span<const float> Find(uint64_t key) const;

  // One step of the inner optimizer, with the sum of the gradients of `samples` examples, at least
  // 1, for each key. Preconditions (checked): each key comes once, and has a row in this round.
  // INVALID_ARGUMENT: a gradient holds NaN or infinity; names key and column, and changes nothing.
  absl::Status Step(std::span<const uint64_t> keys, std::span<const float> sums, uint64_t samples);

  // Keys of the rows that the round's steps have touched, in the order of the first touch.
  std::vector<uint64_t> Touched() const;
  // Samples of the round's steps.
  uint64_t samples() const { return samples_; }
  // How far a row has moved in the round, start minus now, times samples(). `change` has its width.
  void ChangeOf(uint64_t key, std::span<float> change) const;
  // The next round begins, without rows.
  void NextRound();

  size_t size() const { return index_.size(); }

 private:
  struct Row {
    uint64_t key = 0;
    uint64_t round = 0;    // the last one in which it had values
    uint64_t touched = 0;  // the last one in which it was touched; 0 = none
    uint32_t updates = 0;
  };

  RoundRows(const Config& config, std::unique_ptr<RowOptimizer> optimizer,
            const LearningRateSchedule& schedule);

  uint32_t NumberOf(uint64_t key) const;
  // Its number, with empty state. Precondition: fewer than rows_max rows, or some of earlier
  // rounds.
  uint32_t MakeRow(uint64_t key);
  // Forgets half of the rows of earlier rounds, the oldest.
  void DropOldRows();
  void Clear(uint32_t number);
  absl::Status CheckFinite(std::span<const uint64_t> keys, std::span<const float> sums) const;
  std::span<float> At(std::vector<float>& of_rows, uint32_t number, size_t width) {
    return std::span(of_rows).subspan(number * width, width);
  }

  Config config_;
  std::unique_ptr<RowOptimizer> optimizer_;
  LearningRateSchedule schedule_;
  uint64_t round_ = 1;
  uint64_t samples_ = 0;      // of this round
  uint64_t all_samples_ = 0;  // of all rounds
  size_t in_round_ = 0;       // rows with values
  absl::flat_hash_map<uint64_t, uint32_t> index_;
  std::vector<Row> rows_;
  std::vector<uint32_t> free_;     // numbers of no row
  std::vector<uint32_t> touched_;  // in this round
  // By number.
  std::vector<float> starts_;
  std::vector<float> values_;
  std::vector<std::vector<float>> slots_;
};

}  // namespace covey::worker
