// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// The mean gradients that the members of a group get where their programs update.
//
// Invariants:
//  - all members that get a step's mean of a tensor have the same bits, in whatever round they get
//    it, because their parameters stay equal by nothing else. Members that the scheduler has called
//    dead may have others: a step that only they have finished is done again;
//  - it is the mean, weighted by samples, over members that have given a gradient for this step.
//    The member that gets it is one of them, and the samples that it is told are theirs.
//
// Actor-confined; violations outlive it.
class MeanTruth : public Observer {
 public:
  explicit MeanTruth(Violations& violations) : violations_(violations) {}

  struct Place {
    GroupId group;
    Step step;
    size_t tensor = 0;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  void OnSend(absl::Time, const Message& message) override;

  // What a member has submitted: this value in some elements, and 0 in the others.
  struct Gradient {
    double value = 0;
    uint64_t samples = 0;
  };
  void Given(const std::string& member, const Place& place, const Gradient& gradient);

  struct Mean {
    std::span<const float> values;
    std::vector<size_t> elements;  // that are not 0
    uint64_t samples = 0;          // as the member is told
    NodeId node;                   // of the member
  };
  void Got(const std::string& member, const Place& place, const Mean& mean);

  // Means that equaled another member's, and those over fewer members than gave gradients.
  uint64_t compared() const { return compared_; }
  uint64_t partial() const { return partial_; }

 private:
  struct Known {
    std::map<std::string, Gradient> given;
    struct Result {
      std::string member;
      NodeId node;
      std::vector<float> values;
    };
    std::vector<Result> results;
  };
  bool IsMeanOfSome(const std::string& member, const Known& known, const Mean& mean);
  void Complain(const std::string& member, const Place& place, absl::string_view what);

  Violations& violations_;
  std::map<Place, Known> known_;
  std::set<NodeId> departed_;
  uint64_t compared_ = 0;
  uint64_t partial_ = 0;
};

}  // namespace covey::sim
