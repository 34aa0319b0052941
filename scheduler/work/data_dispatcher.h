// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "proto/log.pb.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/work/data_cut.h"
#include "scheduler/work/example_ledger.h"
#include "scheduler/work/member_passes.h"
#include "scheduler/work/recalls.h"

namespace covey::scheduler {

// Dispatches training data: gives workers the examples that they train, and collects their reports.
// ExampleLedger shows the life of an example.
//
//   WorkRequest ─┬─ wants items ────▶ answered at once
//                ├─ reports items ──▶ waits for the next record ──▶ answered
//                └─ tells nothing, and its sender holds items ──▶ waits until some are recalled,
//                   for at most Recalls::kWaitMax ──▶ answered
//
// Invariants:
//  1. Each example of each pass is reported finished, with an OK answer, exactly once; unless its
//     holder was slower than kLease after a restart of the scheduler. Then another node trains it
//     too, and only the first report counts.
//  2. An answer that tells of finished examples leaves when these are durable. Reports wait for
//     the next record, at most kRecordInterval: a record per report would be one per step and
//     worker. Near the end of training, when nothing is left to give, they wait for at most
//     kLastRecordInterval, and the last one not at all: all workers wait for it.
//  3. A request that is repeated is answered as the first time.
//  4. A request that names a pass gets items of that pass only, and none before all earlier passes
//     are finished. A late copy of it, after the node has named another one, gets none.
//  5. An example that is recalled (Recalls) is leased to its holder until the holder returns it.
//     Only the holder knows what it has begun to train; it returns the rest. A lost or repeated
//     message changes nothing.
//
// Members that meet at the end of each pass name the pass in which they are (MemberPasses). The end
// of the latest pass that is named is recorded as soon as the end of training is.
//
// Edits `work` of the state, which outlives it. Actor-confined, deterministic. At most
// kWorkLedgersMax data sets of kWorkItemsMax items per pass.
class DataDispatcher {
 public:
  static constexpr absl::Duration kRecordInterval = absl::Milliseconds(500);
  static constexpr absl::Duration kLastRecordInterval = absl::Milliseconds(20);
  static constexpr absl::Duration kLease = absl::Seconds(15);

  explicit DataDispatcher(ClusterState& state) : state_(state), cut_(state) {}

  // Once, before anything else. Nodes of a recovered state that live have been heard by `heard_by`;
  // the others are no longer ALIVE then.
  void Start(absl::Time now, absl::Time heard_by);

  // A reply that is due when everything decided so far is durable.
  struct Answer {
    Message request;
    absl::Status status;
    proto::WorkReply reply = {};
  };

  // `request` holds a WorkRequest of an ALIVE node. Appends the replies that are due now to
  // `answers`. Errors: INVALID_ARGUMENT: malformed, or workers describe the data set differently;
  // RESOURCE_EXHAUSTED: too many data sets; UNAVAILABLE: it asks for the pass of its group, and a
  // restarted scheduler has not heard the members yet, for at most kLease, or until `heard_by`.
  void OnRequest(absl::Time now, const Message& request, std::vector<Answer>& answers);
  // Makes reports ready to be logged, and ends expired leases. Appends the replies to the reports,
  // and to requests that have waited long enough for a recall.
  void Tick(absl::Time now, std::vector<Answer>& answers);
  // A node is no longer ALIVE: frees its examples. Appends the replies to its requests: ABORTED.
  void OnDeparture(absl::Time now, NodeId node, std::vector<Answer>& answers);
  // When Tick has to be called.
  absl::Time NextTick() const;

  // The training data of a snapshot: data_cut.h.
  absl::Status BeginCut(std::map<GroupId, uint64_t> last_steps) {
    return cut_.Begin(std::move(last_steps));
  }
  void EndCut() { cut_.End(); }
  std::string WhyCutIsImpossible() const { return cut_.WhyImpossible(); }
  bool CutIsComplete() const { return cut_.WaitsFor().empty(); }
  std::string CutWaitsFor() const { return cut_.WaitsFor(); }
  std::vector<proto::WorkLedger> LedgersAtCut() const { return cut_.Ledgers(); }

 private:
  using Range = ExampleLedger::Range;

  struct Dataset {
    ExampleLedger ledger;
    MemberPasses passes;
    // The data set was in the log when this object was made.
    bool is_recovered = false;
    // Number of finished examples in the record.
    uint64_t finished_recorded = 0;
    bool is_dirty = false;  // `ledger` has finished more

    // By node, its newest request for items, with the reply.
    struct Given {
      uint64_t request_id = 0;
      std::vector<Range> items;
    };
    std::map<NodeId, Given> given = {};
    // By node, its newest request that returned items.
    std::map<NodeId, uint64_t> returned = {};
    // By node, reports that wait for the next record.
    std::map<NodeId, Message> reports = {};
    Recalls recalls = {};
  };

  absl::Status Check(const proto::WorkRequest& request) const;
  void Emplace(const std::string& name, Dataset dataset);
  void AddDataset(const proto::WorkRequest& request, NodeId node, Transaction& change);
  // The sender asks for its pass, which is that of its group, or else the first one that is not
  // finished. UNAVAILABLE as OnRequest.
  absl::Status AssignPass(absl::Time now, const Message& message, Dataset& dataset);
  static MemberPasses::Outcome NotePass(const Message& message, Dataset& dataset);
  void TakeBack(const Message& message, Dataset& dataset, Transaction& change) const;
  // Whether the request has nothing to do but wait for a recall.
  static bool WaitsForRecall(const Message& message, const Dataset& dataset);
  // The sender has asked in vain.
  void Recall(absl::Time now, const Message& message, Dataset& dataset,
              std::vector<Answer>& answers) const;
  // A node that holds nothing any more does not wait for a recall.
  void EndIdleWait(NodeId node, Dataset& dataset, std::vector<Answer>& answers) const;
  // The items for a request; the same ones when it is retried.
  std::vector<Range> Give(absl::Time now, const Message& message, Dataset& dataset,
                          Transaction& change) const;
  void RecordDue(absl::Time now, Transaction& change, std::vector<Answer>& answers);
  // Brings the record of a data set up to date, and replies to the reports.
  void Record(const std::string& name, Dataset& dataset, Transaction& change,
              std::vector<Answer>& answers);
  // When to record what the data set has finished.
  absl::Time RecordAt(const Dataset& dataset) const;
  const proto::WorkLedger* FindRecord(const std::string& name) const;
  void Write(const std::string& name, const Dataset& dataset, Transaction& change) const;
  proto::WorkReply ReplyOf(const Message& message, const Dataset& dataset,
                           const std::vector<Range>& items) const;

  ClusterState& state_;
  std::map<std::string, Dataset> datasets_;  // one for each record in the state
  DataCut cut_;
  // Lowest id of the nodes that have registered since Start.
  NodeId first_newcomer_;
  absl::Time last_record_ = absl::InfinitePast();
};

}  // namespace covey::scheduler
