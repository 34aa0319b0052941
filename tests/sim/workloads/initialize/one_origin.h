// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>

#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// The numbers that calls give as initial values, each its own, and which of them servers show. A
// call may give the state of an optimizer, too, which follows from its number.
//
// Invariants, of every reply of a server with values: all are one number that some call gave, and
// the same in all replies of the run. With the optimizer's slot: it is the one of that call, or
// zero if that gave none; and the table has had as many updates since as training examples. No call
// is told that it gave the values when the tables show those of another.
//
// Actor-confined.
class OneOrigin : public Observer {
 public:
  enum class Gives { kValues, kState };
  // What comes with a number.
  struct State {
    float slot = 0;
    uint64_t updates = 0;
    uint64_t samples = 0;
  };

  explicit OneOrigin(Violations& violations) : violations_(violations) {}

  // A number that no call gave before.
  float NewNumber(Gives gives);
  // Of a number that NewNumber has returned; zeros if its call gives values alone.
  State StateOf(float number) const;
  // A call was told that the tables have taken its number.
  void NoteGiven(float number);
  void Check(std::span<const float> values);
  // The optimizer's slot, of which values were checked before.
  void CheckSlot(std::span<const float> slot);

  void OnSend(absl::Time now, const Message& message) override;

  // The number that the tables show; nothing = nobody has read them yet.
  std::optional<float> shown() const { return shown_; }
  size_t numbers() const { return numbers_.size(); }

 private:
  Violations& violations_;
  std::set<float> numbers_;
  std::set<float> with_state_;
  std::set<float> given_;  // of which calls were told so
  std::optional<float> shown_;
};

}  // namespace covey::sim
