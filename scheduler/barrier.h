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

// Named meeting points. Those who wait under a name are released when they are `participants`: all
// or none.
//
//   open ── the last arrival ──▶ all are answered and remembered; the next to arrive opens it anew
//   open ── deadline or departure of one ──▶ open, its arrival withdrawn
//
// Invariants:
//  1. A request that was released stays so: repeated, it is answered with OK at once.
//  2. A node counts once however often it asks; its newest request is answered.
//  3. Only members are remembered, so memory is bounded by names and members.
//
// Edits `barriers` of `state`, which outlives it. Actor-confined, deterministic. At most
// kBarrierNamesMax names at a time.
class Barriers {
 public:
  explicit Barriers(proto::LogRecord& state) : state_(state) {}

  // An answer that is due.
  struct Answer {
    Message request;
    absl::Status status;
  };

  // `request` holds a BarrierRequest of an ALIVE node. Appends to `answers` what is due now;
  // returns the decision when all have arrived, else "". Errors: INVALID_ARGUMENT: malformed, or
  // the callers disagree on the number of participants; RESOURCE_EXHAUSTED: too many names.
  std::string Arrive(absl::Time now, const Message& request, std::vector<Answer>& answers);

  // Withdraws those whose deadline has passed: DEADLINE_EXCEEDED naming who is missing.
  void Expire(absl::Time now, std::vector<Answer>& answers);
  // Withdraws a node that has departed: ABORTED. Forgets what it went through.
  void Forget(NodeId node, std::vector<Answer>& answers);
  // The earliest deadline.
  absl::Time NextDeadline() const;

 private:
  struct Arrival {
    Message request;
    absl::Time deadline;
  };
  struct Gathering {
    uint32_t participants = 0;
    std::map<NodeId, Arrival> arrivals;
  };

  absl::Status Check(const Message& request) const;
  bool WasReleased(const Message& request) const;
  absl::Status MissingStatus(const std::string& name, const Gathering& gathering,
                             NodeId caller) const;

  proto::LogRecord& state_;
  std::map<std::string, Gathering> gatherings_;  // by name; never empty
};

}  // namespace covey::scheduler
