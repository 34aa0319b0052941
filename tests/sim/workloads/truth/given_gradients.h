// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "tests/sim/checkers/published_view.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// Which programs' gradients must be found in which steps of their groups. A step that is retried
// after deaths has the gradients of the survivors, which may be none. A gradient that a program
// gave before it moved to another group counts in a step of the new group. A gradient given while
// its group was forming counts in a later step when the other members turn out to be further.
//
// Actor-confined.
class GivenGradients : public Observer {
 public:
  // Each tensor is one table.
  using Place = std::tuple<GroupId, Step, TableId>;

  // Notes which programs have died or left, and for which steps a program has sent any message that
  // holds its gradient.
  void OnSend(absl::Time, const Message& message) override {
    if (const proto::ClusterView* view = PublishedView(message)) {
      for (const proto::Node& node : view->nodes()) {
        if (node.state() != proto::Node::ALIVE) departed_.insert(NodeId(node.id()));
      }
      return;
    }
    const NodeId program = message.from().node;
    if (message.envelope.has_group_slice()) {
      const proto::GroupSlice& slice = message.envelope.group_slice();
      // Sums travel on odd streams, one per bucket.
      if (slice.phase() != proto::GroupSlice::REDUCE || slice.stream() % 2 == 0) return;
      if (slice.samples() == 0) return;
      shown_.insert({program, {GroupId(slice.round().group()), Step(slice.sequence())}});
    } else if (message.envelope.has_push_request()) {
      const proto::PushId& id = message.envelope.push_request().id();
      shown_.insert(
          {program, {GroupId(static_cast<uint32_t>(id.producer())), Step(id.sequence())}});
    }
  }

  void Give(NodeId program, const Place& place) { givers_[place].insert(program); }
  // A program was told that the step has ended: its gradient is in.
  void Finish(NodeId program, const Place& place) {
    const auto found = givers_.find(place);
    if (found != givers_.end() && found->second.count(program) > 0) finished_.insert(place);
  }
  // The program was told that its step failed.
  void TakeBack(NodeId program, const Place& place) {
    const auto found = givers_.find(place);
    if (found != givers_.end()) found->second.erase(program);
  }
  // The program has moved to another group, or to other steps of its group: its gradient for
  // `place` counts for `now`, if at all.
  void MoveAway(NodeId program, const Place& place, const Place& now) {
    const auto found = givers_.find(place);
    if (found == givers_.end() || found->second.erase(program) == 0) return;
    moved_.insert(place);
    came_.insert(now);
    const auto& [group, step, table] = place;
    if (shown_.count({program, {group, step}}) == 0) ++only_elsewhere_[place];
  }

  // At least one gradient must be in, once the step was taken.
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
  // The number of gradients that were given for this step and can be in another one only, because
  // no program was told of them under this one. Each has its share of an update there.
  uint64_t OnlyElsewhere(const Place& place) const {
    const auto found = only_elsewhere_.find(place);
    return found == only_elsewhere_.end() ? 0 : found->second;
  }
  // A gradient that was given for another step may have a share of this one.
  bool MayBeShared(const Place& place) const { return came_.count(place) > 0; }

 private:
  std::map<Place, std::set<NodeId>> givers_;
  std::set<std::pair<NodeId, std::pair<GroupId, Step>>> shown_;
  std::set<Place> finished_;
  std::set<Place> moved_;
  std::map<Place, uint64_t> only_elsewhere_;
  std::set<Place> came_;
  std::set<NodeId> departed_;
};

}  // namespace covey::sim
