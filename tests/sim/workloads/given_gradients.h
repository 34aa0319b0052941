#pragma once

#include <map>
#include <set>
#include <tuple>

#include "common/cluster/ids.h"

namespace covey::sim {

// Which programs' gradients are to be found in which steps of their groups. A step that is done again
// after deaths has the gradients that are left, which may be none; and what a program had given when
// it came to another group counts in a step of that one.
//
// Actor-confined.
class GivenGradients {
 public:
  // Each tensor is one table.
  using Place = std::tuple<GroupId, Step, TableId>;

  void Give(NodeId program, const Place& place) { givers_[place].insert(program); }
  // One that gave was told that the step is over: what it gave is in.
  void Finish(NodeId program, const Place& place) {
    const auto found = givers_.find(place);
    if (found != givers_.end() && found->second.count(program) > 0) finished_.insert(place);
  }
  // The program was told that its step failed.
  void TakeBack(NodeId program, const Place& place) {
    const auto found = givers_.find(place);
    if (found != givers_.end()) found->second.erase(program);
  }
  // The program has come to another group, or to other steps of its group.
  void MoveAway(NodeId program, const Place& place) {
    const auto found = givers_.find(place);
    if (found == givers_.end() || found->second.erase(program) == 0) return;
    moved_.insert(place);
  }
  // It died, or left.
  void Depart(NodeId program) { departed_.insert(program); }

  // Somebody's gradient must be in, once the step was taken.
  bool IsExpected(const Place& place) const {
    if (finished_.count(place) > 0) return true;
    const auto found = givers_.find(place);
    if (found == givers_.end()) return false;
    for (const NodeId giver : found->second) {
      if (departed_.count(giver) == 0) return true;
    }
    return false;
  }
  // A gradient that was given for this step may be in another one.
  bool MayBeElsewhere(const Place& place) const { return moved_.count(place) > 0; }

 private:
  std::map<Place, std::set<NodeId>> givers_;
  std::set<Place> finished_;
  std::set<Place> moved_;
  std::set<NodeId> departed_;
};

}  // namespace covey::sim
