// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/cluster/ids.h"
#include "common/collective/plan.h"
#include "worker/update/local_rounds.h"

namespace covey::worker {

// What every member of a group knows of the rounds that the LOCAL tables of one bucket are in, from
// the values that all of them get after each step. After a member has died, the member that answers
// for its part goes on from here: no step of a round is lost with its owner, and what was pushed
// for a round is pushed again with the same content.
//
// Without overlap, the start of a round is known exactly. With overlap it is known except for the
// step that took the outer values in: only the owner can tell what that step learned from what came
// in. So after a recovery that step is not part of the next push.
//
// Memory: twice the bucket, four times with overlap. The same on all members that have taken in the
// same steps. Actor-confined. Deterministic.
class RoundMemory {
 public:
  struct Piece {
    PartRange elements;  // within the bucket
    LocalRounds rounds;
  };
  RoundMemory(size_t elements, std::vector<Piece> pieces);

  // Nothing has been taken in.
  bool empty() const { return empty_; }
  // The newest step that was taken in; 0 = none.
  Step learned() const { return learned_; }
  void Clear();
  // What all members have after a step of the whole group, and the examples behind it.
  void TakeStep(Step step, std::span<const float> values, uint64_t samples);
  // A step whose values are gone with the members that had them: only what was pushed of it is
  // left.
  void Skip(Step step);
  // What all members have after a fetch (LocalSgdPart::Fetch).
  void TakeFetch(std::span<const float> values);

  // All of it, as bits that travel in floats; of the same size on all members.
  size_t saved_floats() const;
  void Save(std::span<float> to) const;
  void Load(std::span<const float> from);

  // One part of one piece.
  struct Round {
    std::span<const float> values;
    std::span<const float> start;  // of the round; undefined while a push is in flight
    uint64_t samples = 0;          // of the round
    uint64_t all_samples = 0;      // of all rounds
    // The round before was pushed after `step`; its outer values have not been taken in.
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
  struct State {
    uint64_t samples = 0;
    uint64_t all_samples = 0;
    uint64_t pushed_step = 0;  // 0 = no push is in flight
    uint64_t pushed_samples = 0;
  };

  void Count(Step step, std::span<const float> values, uint64_t samples);
  // The round starts again at `values`; what it has learned and not pushed stays on top of them.
  void Rebase(const Piece& piece, State& state, std::span<const float> values);

  std::vector<Piece> pieces_;
  std::vector<State> states_;  // of the pieces
  bool empty_ = true;
  Step learned_;
  std::vector<float> values_;
  std::vector<float> start_;
  // With overlap.
  std::vector<float> pushed_start_;
  std::vector<float> pushed_values_;
};

}  // namespace covey::worker
