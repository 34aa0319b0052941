// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "common/cluster/ids.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// Tracks where members of groups meet at the end of a pass, according to the messages between them
// and the scheduler.
//
// Invariants:
//  - a node that names a pass is given examples of that pass only;
//  - a node is given examples of a pass only after each member of its group that had examples of an
//    earlier one, in this group, has ended that: the scheduler has released all members from the
//    barrier at its end at once, or the member itself has gone on.
class PassMeetings : public Observer {
 public:
  // `published`: the newest view that the scheduler has published; null when it does not run.
  PassMeetings(Violations& violations, std::function<const proto::ClusterView*()> published)
      : violations_(violations), published_(std::move(published)) {}

  // The name of the barrier at the end of a pass.
  static std::string BarrierName(uint64_t pass, const proto::Group& group);

  void OnSend(absl::Time now, const Message& message) override;
  void OnReceive(absl::Time, absl::string_view, const Message&) override {}

  // Whether the published view names the node as a member of a group that is there.
  bool IsMember(NodeId node) const { return GroupOf(node.value()) != nullptr; }
  // How often a member was released from a barrier.
  uint64_t met() const { return met_; }

 private:
  struct Place {
    // The latest pass of which it was given examples, its group then, and the group's generation
    // when it was first given some there.
    uint64_t taken = 0;
    uint64_t group = 0;
    uint64_t joined = 0;
    // Generation of the group in which it has met the others last; has it not, it knows of all.
    uint64_t met = std::numeric_limits<uint64_t>::max();
    // All passes before this one are over for it.
    uint64_t ended = 0;
  };
  using RequestKey = std::pair<uint64_t, uint64_t>;  // node and request id

  const proto::Group* GroupOf(uint64_t node) const;
  void NoteItems(const Message& message);

  Violations& violations_;
  const std::function<const proto::ClusterView*()> published_;
  std::map<uint64_t, Place> places_;      // by node
  std::map<RequestKey, uint64_t> named_;  // the pass in each request for work
  // Of members that have arrived and are not released.
  struct Barrier {
    uint64_t pass = 0;
    uint64_t generation = 0;
  };
  std::map<RequestKey, Barrier> barriers_;
  uint64_t met_ = 0;
};

}  // namespace covey::sim
