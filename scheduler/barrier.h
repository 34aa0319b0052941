#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "proto/log.pb.h"

namespace covey::scheduler {

// Named meeting points. A round of a name is released when `participants` nodes have arrived: all
// or none.
//
//   round: open ── the last arrival ──▶ finished, all are answered; the next round may begin
//          open ── deadline or departure of one ──▶ open, its arrival withdrawn
//
// Invariants:
//  1. Rounds of one name finish in order, each once; the finished one is in `state`.
//  2. An arrival for a finished round is answered with OK at once: repeating does no harm.
//  3. A node counts once per round however often it asks; its newest request is answered.
//
// Edits barrier_rounds of `state`, which outlives it. Actor-confined, deterministic. At most
// kBarrierNamesMax names.
class Barriers {
 public:
  explicit Barriers(proto::LogRecord& state) : state_(state) {}

  // An answer that is due.
  struct Answer {
    Message request;
    absl::Status status;
  };

  // `request` holds a BarrierRequest of an ALIVE node. Appends to `answers` what is due now;
  // returns the decision when a round has finished, else "". Errors: INVALID_ARGUMENT: malformed,
  // or the callers disagree on the number of participants; FAILED_PRECONDITION: a round in between
  // has not finished; RESOURCE_EXHAUSTED: too many names.
  std::string Arrive(absl::Time now, const Message& request, std::vector<Answer>& answers);

  // Withdraws those whose deadline has passed: DEADLINE_EXCEEDED naming who is missing.
  void Expire(absl::Time now, std::vector<Answer>& answers);
  // Withdraws a node that has departed: ABORTED.
  void Forget(NodeId node, std::vector<Answer>& answers);
  // The earliest deadline.
  absl::Time NextDeadline() const;

 private:
  struct Arrival {
    Message request;
    absl::Time deadline;
  };
  struct Round {
    uint32_t participants = 0;
    std::map<NodeId, Arrival> arrivals;
  };

  absl::Status Check(const Message& request) const;
  absl::Status MissingStatus(const std::string& name, const Round& round, NodeId caller) const;

  proto::LogRecord& state_;
  std::map<std::string, Round> rounds_;  // of each name the one after the finished
};

}  // namespace covey::scheduler
