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

// The results that members of groups got at the ends of their steps.
//
// Invariants:
//  - all members of a group that finished a step without error have the same bits of each tensor,
//    whatever happened to the others;
//  - an error is one that faults explain, and names the node or object that it concerns.
//
// Actor-confined.
class GroupResults {
 public:
  explicit GroupResults(Violations& violations) : violations_(violations) {}

  // When values were read, for example at the end of a step, in a round of the group. Members that
  // died after a step, and those that retry it, may have different values.
  struct Moment {
    worker::GroupRound round;
    Step step;
    int phase = 0;
    friend auto operator<=>(const Moment&, const Moment&) = default;
  };
  void Succeeded(absl::string_view member, const Moment& moment, size_t tensor,
                 std::span<const float> values);
  void Failed(absl::string_view member, const std::string& what, const absl::Status& status);

  // Results that equaled another member's.
  uint64_t compared() const { return compared_; }
  uint64_t succeeded() const { return succeeded_; }
  uint64_t failed() const { return failed_; }

 private:
  struct Result {
    std::string member;
    uint64_t digest = 0;
  };

  Violations& violations_;
  std::map<std::pair<Moment, size_t>, Result> first_;  // the first result of any member
  uint64_t compared_ = 0;
  uint64_t succeeded_ = 0;
  uint64_t failed_ = 0;
};

}  // namespace covey::sim
