// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "proto/log.pb.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/work/example_ledger.h"
#include "scheduler/work/member_passes.h"
#include "scheduler/work/range_set.h"

namespace covey::scheduler {

// The training data of a cut. A snapshot holds the model after exactly one step of each group, the
// group's last one; this class finds the examples that were trained in the steps up to it.
//
//   Begin ─▶ pending ─▶ all members have reported their group's last step ─▶ Ledgers ─▶ End
//
// No later step than the last ones has been reported when the cut begins. So everything finished
// before it is part of the cut. What is reported afterwards for a later step is not.
//
// A member has told enough about a data set when it has reported its group's last step, or holds
// none of its examples although others have reported that step. A cut does not wait for a member
// that never made a request about the data set, nor for one that has asked for no items since it
// began another pass or left it, nor for any member when all examples are finished: members may
// report nothing after that. While a restarted scheduler does not know the holders of some
// examples, each member may be one; a member that has made no request since then, until the lease
// is over.
//
// So the cut cannot be made if all examples are finished, some of them in later steps, and a member
// has not reported its group's last step: it may have trained such an example, too, in the cut.
//
// Members of groups may not change while a cut is pending: end it then. Ask for Ledgers when the
// groups have passed their last steps, which the shards know. Shards also notice a last step that a
// group had passed when the cut began: a restarted scheduler has forgotten earlier reports.
//
// Used by DataDispatcher. Reads the state, which outlives it. Actor-confined, deterministic.
class DataCut {
 public:
  explicit DataCut(const ClusterState& state) : state_(state) {}

  // `ledger` outlives this object.
  void AddDataset(const std::string& name, const ExampleLedger& ledger) {
    accounts_.emplace(name, Account{.ledger = ledger});
  }
  // A valid request, before its data set's ledger takes it in, and what it has told of its pass.
  void Note(const Message& message, MemberPasses::Outcome place);
  // A node has made a request about the data set that tells nothing of its examples. Precondition:
  // AddDataset was called with this name.
  void NoteAsked(const std::string& name, NodeId node) {
    accounts_.at(name).reports.try_emplace(node);
  }
  // A node is no longer ALIVE.
  void Forget(NodeId node);

  // The last step of each group that is part of the cut. FAILED_PRECONDITION: a member has reported
  // a later step already, or nodes do not tell the steps in which they train. Precondition: no cut
  // is pending.
  absl::Status Begin(std::map<GroupId, uint64_t> last_steps);
  void End();
  // Why the cut cannot be made, for users: end it. Empty = it may be. Precondition here and below:
  // a cut is pending.
  std::string WhyImpossible() const;
  // What the cut waits for; for users. Empty = it is complete unless it is impossible.
  std::string WaitsFor() const;
  // By name, the records of the data sets in which exactly the examples of the cut are finished and
  // nothing is leased. Precondition: WhyImpossible() and WaitsFor() are empty.
  std::vector<proto::WorkLedger> Ledgers() const;

 private:
  // A node's newest report. Request ids of a node grow.
  struct Report {
    uint64_t request_id = 0;
    GroupId group;               // of the node at that time, which has counted the steps
    uint64_t finished_step = 0;  // as WorkRequest
    uint64_t newest_step = 0;
    bool tells_steps = true;
    bool is_away = false;  // it holds nothing, and has asked for no items since
  };
  // What nodes have told about one data set.
  struct Account {
    const ExampleLedger& ledger;
    // Of each node that has made a request.
    std::map<NodeId, Report> reports = {};
    // Of a pending cut: examples that were finished in later steps; and nodes that have not told
    // the step of an example.
    RangeSet later = {};
    std::set<NodeId> untold = {};

    bool is_finished() const { return ledger.finished() == ledger.total(); }
  };

  GroupId GroupOf(NodeId node) const;
  // No limit for a group that is not part of the cut, or none.
  uint64_t LastStepOf(GroupId group) const;
  void NoteFinished(const Message& message, Account& account) const;
  // Whether a member of the group has reported its last step; and any of them, about any data set.
  bool HasReported(const Account& account, NodeId member, GroupId group) const;
  bool HasPassed(const proto::Group& group) const;
  // A living member that has not reported its group's last step, about this data set; none = all
  // have.
  std::optional<NodeId> FirstUnreported(const Account& account) const;

  const ClusterState& state_;
  std::map<std::string, Account> accounts_;  // by name of the data set
  // Of the pending cut.
  std::optional<std::map<GroupId, uint64_t>> last_steps_;
};

}  // namespace covey::scheduler
