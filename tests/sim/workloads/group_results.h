// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/cluster/ids.h"
#include "tests/sim/checkers/violations.h"
#include "worker/group/group_round.h"

namespace covey::sim {

// What members of groups were told at the ends of their steps.
//
// Invariants:
//  - all members of a group that finished a step without error have the same bits of each tensor,
//    whatever became of the others;
//  - an error is one that faults explain, and says who or what is concerned.
//
// Actor-confined.
class GroupResults {
 public:
  explicit GroupResults(Violations& violations) : violations_(violations) {}

  // When values were had: at the end of a step, say, in a round of the group. Who died after
  // a step, and those who do it again, may have different ones.
  struct Moment {
    worker::GroupRound round;
    Step step;
    int phase = 0;
    friend auto operator<=>(const Moment&, const Moment&) = default;
  };
  void Succeeded(absl::string_view member, const Moment& moment, size_t tensor,
                 std::span<const float> values);
  void Failed(absl::string_view member, const std::string& what, const absl::Status& status);

  // Results that were found equal to another member's.
  uint64_t compared() const { return compared_; }
  uint64_t succeeded() const { return succeeded_; }
  uint64_t failed() const { return failed_; }

 private:
  struct Result {
    std::string member;
    uint64_t digest = 0;
  };

  Violations& violations_;
  std::map<std::pair<Moment, size_t>, Result> first_;  // that any member had
  uint64_t compared_ = 0;
  uint64_t succeeded_ = 0;
  uint64_t failed_ = 0;
};

}  // namespace covey::sim
