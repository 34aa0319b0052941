#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "proto/log.pb.h"
#include "scheduler/work/range_set.h"

namespace covey::scheduler {

// Who trains which examples. The passes over a data set are one row of examples, pass after pass;
// each of them is
//
//              given                     reported
//   untouched ───────▶ leased to a node ──────────▶ finished
//                        │         ▲
//                        ▼         │ given again, first of all
//     the node is lost, or ─────▶ free
//     gives it back
//
// Finished ones are in the log; what is leased to whom is not. So that a restarted scheduler knows
// which examples may be in somebody's hands, it logs ahead how far it gives (kGivenAhead): as the
// last `finished` range of the ledger, with a count of 0. Those, and what it gives first to each node
// of before the restart, it then holds for kLease, and until their pass has no other examples left:
// their holders report them, or they are given again. A holder that takes longer trains what somebody
// else trains too; only the first report counts.
//
// Invariants:
//  1. Each example of each pass is reported finished, with an OK answer, exactly once; unless its
//     holder was slower than kLease after a restart of the scheduler.
//  2. An answer that tells of finished examples leaves when these are durable. Reports wait for
//     the next record, at most kRecordInterval: a record per report would be one per step and worker.
//  3. A request that is repeated is answered as the first time.
//
// Edits `work` of `state`, which outlives it. Actor-confined, deterministic. At most kWorkLedgersMax
// data sets of kWorkItemsMax items per pass.
class Work {
 public:
  static constexpr absl::Duration kRecordInterval = absl::Milliseconds(500);
  static constexpr absl::Duration kLease = absl::Seconds(15);
  // Items beyond those given that one record allows to be given.
  static constexpr uint64_t kGivenAhead = 64;
  // Passes times examples; far from overflow.
  static constexpr uint64_t kExamplesMax = uint64_t{1} << 62;

  explicit Work(proto::LogRecord& state) : state_(state) {}

  // Once, before anything else.
  void Start(absl::Time now);

  // An answer that is due when everything decided so far is durable.
  struct Answer {
    Message request;
    absl::Status status;
    proto::WorkReply reply = {};
  };
  // What was edited. Both may be empty.
  struct Change {
    // For people, and for the log.
    std::string decision = "";
    // For the log only.
    std::string record = "";
  };

  // `request` holds a WorkRequest of an ALIVE node. Appends to `answers` what is due now. Errors:
  // INVALID_ARGUMENT: malformed, or workers describe the data set differently; RESOURCE_EXHAUSTED:
  // too many data sets.
  Change Take(absl::Time now, const Message& request, std::vector<Answer>& answers);
  // Makes reports ready to be logged, frees what was held for too long. Appends their answers.
  Change Tick(absl::Time now, std::vector<Answer>& answers);
  // Frees what a node had that has departed. Appends its reports' answers: ABORTED.
  Change Forget(absl::Time now, NodeId node, std::vector<Answer>& answers);
  // When Tick has to be called.
  absl::Time NextTick() const;

 private:
  using Range = RangeSet::Range;

  // Positions in the row of all passes.
  struct Ledger {
    RangeSet finished;
    uint64_t finished_recorded = 0;
    std::map<NodeId, RangeSet> leased;
    RangeSet free;
    // Given before a restart, to whom is not known; or in answer to the first request after it of a
    // node that was there before: it may be a late copy of one that was answered then, and nobody
    // holds them.
    RangeSet unknown;
    absl::Time unknown_until = absl::InfiniteFuture();
    bool unknown_may_be_lost = false;  // that time is over
    // The first that was never given; how far the log allows to give.
    uint64_t next = 0;
    uint64_t allowed = 0;

    // By node, its newest request for items and the answer.
    struct Given {
      uint64_t request_id = 0;
      std::vector<Range> items;
    };
    std::map<NodeId, Given> given;
    // By node, its newest request that gave something back.
    std::map<NodeId, uint64_t> returned;
    // By node, reports that wait for the next record.
    std::map<NodeId, Message> reports;
    bool dirty = false;  // `finished` is ahead of the record
    bool recovered = false;
  };

  absl::Status Check(const proto::WorkRequest& request) const;
  proto::WorkLedger* Find(const std::string& name);
  void Finish(Ledger& ledger, Range range);
  void GiveBack(Ledger& ledger, NodeId node, Range range);
  // Items for somebody, who is to be noted by the caller.
  std::vector<Range> Give(Ledger& ledger, const proto::WorkLedger& record, uint32_t wanted,
                          Change& change);
  // Brings the record up to date; says which passes have ended since the last time.
  Change Record(Ledger& ledger, proto::WorkLedger& record, std::vector<Answer>& answers);
  void WriteRanges(const Ledger& ledger, proto::WorkLedger& record) const;
  proto::WorkReply ReplyOf(const Ledger& ledger, const proto::WorkLedger& record,
                           const std::vector<Range>& items) const;

  proto::LogRecord& state_;
  std::map<std::string, Ledger> ledgers_;  // one per `work` of the state
  // Lowest id of nodes that have come since Start.
  NodeId first_newcomer_;
  absl::Time next_record_ = absl::InfinitePast();
};

}  // namespace covey::scheduler
