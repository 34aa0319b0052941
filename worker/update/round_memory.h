// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "common/cluster/ids.h"
#include "common/collective/part_range.h"
#include "worker/update/local_rounds.h"
#include "worker/update/round_progress.h"

namespace covey::worker {

// The state of the current rounds of one bucket's LOCAL tables, which every member of a group
// derives from the values that all of them get after each step. After a member has died, its
// successor for a part continues from here: no step of a round is lost with its owner, and a round
// is pushed again with the same content.
//
// Without overlap, the start of a round is known exactly. With overlap it is known except for the
// step that adopted the outer values: only the owner can separate what that step learned from what
// it adopted. So after a recovery that step is not part of the next push.
//
// Memory: twice the bucket, four times with overlap. The same on all members that have recorded the
// same steps. Actor-confined. Deterministic.
class RoundMemory {
 public:
  struct Piece {
    PartRange elements;  // within the bucket
    LocalRounds rounds;
  };
  RoundMemory(size_t elements, std::vector<Piece> pieces);

  // Whether nothing has been recorded.
  bool empty() const { return empty_; }
  // The newest recorded step; 0 = none.
  Step learned() const { return learned_; }
  void Clear();
  // Records the values that all members have after a step of the whole group, and its examples.
  void TakeStep(Step step, std::span<const float> values, uint64_t samples);
  // Records a step whose values were lost with the members that had them: only what was pushed of
  // it is left. Before the first record this changes nothing.
  void Skip(Step step);
  // Skips each step after `done`, up to `last`.
  void SkipAll(Step done, Step last) {
    while (done < last) Skip(done = done.Next());
  }
  // Records the values that all members have after a fetch (LocalSgdPart::Fetch).
  void TakeFetch(std::span<const float> values);

  // The state, for members that restore it: values, of which there are equally many on all members,
  // and the bytes of a RoundProgress.
  size_t saved_values() const;
  void SaveValues(std::span<float> to) const;
  Buffer SaveProgress() const;
  // INVALID_ARGUMENT: `progress` is none of these tables (DecodeRoundProgress); then nothing has
  // changed.
  absl::Status Load(std::span<const float> values, const Buffer& progress);

  // One part of one piece.
  struct Round {
    std::span<const float> values;
    std::span<const float> start;  // of the round; undefined while a push is in flight
    uint64_t samples = 0;          // of the round
    uint64_t all_samples = 0;      // of all rounds
    // The previous round was pushed after `step`; its outer values have not been adopted.
    struct Pushed {
      Step step;
      std::span<const float> start;
      std::span<const float> values;
      uint64_t samples = 0;
    };
    std::optional<Pushed> pushed;
  };
  // Precondition: not empty; `elements` lie in one piece.
  Round At(const PartRange& elements) const;

 private:
  void Count(Step step, std::span<const float> values, uint64_t samples);
  // Restarts the round at `values`; what was learned and not pushed is added on top.
  void Rebase(const Piece& piece, TableRound& state, std::span<const float> values);

  std::vector<Piece> pieces_;
  std::vector<TableRound> states_;  // of the pieces
  bool empty_ = true;
  Step learned_;
  std::vector<float> values_;
  std::vector<float> start_;
  // With overlap only.
  std::vector<float> pushed_start_;
  std::vector<float> pushed_values_;
};

}  // namespace covey::worker
