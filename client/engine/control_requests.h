// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/net/control_methods.h"
#include "common/runtime/actor.h"

namespace covey::client {

// Requests to the scheduler other than membership: tables, barriers, status. Each is retried under
// the same request id until it is answered or its deadline has expired.
//
// Actor-confined. Deterministic.
class ControlRequests {
 public:
  // `reply` is null when `status` is not OK. Runs on the loop, exactly once.
  using Done = std::function<void(absl::Time, const absl::Status& status,
                                  const proto::Envelope* reply, Outbox&)>;

  // `next_request_id` is shared with the other machines of the loop and outlives this one.
  explicit ControlRequests(uint64_t& next_request_id) : next_request_id_(next_request_id) {}

  // `request` is an envelope with one of the control bodies set.
  void Start(absl::Time now, proto::Envelope request, absl::Time deadline, Done done,
             Outbox& outbox);
  void FailAll(absl::Time now, const absl::Status& status, Outbox& outbox);

  // Whether the message is the reply to a request that is pending here.
  bool Awaits(const Message& message) const;
  // True when the message was a reply for this machine.
  bool Receive(absl::Time now, const Message& message, Outbox& outbox);
  void Wake(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const;

 private:
  struct Pending {
    const ControlMethod* method = nullptr;
    proto::Envelope request;
    absl::Time deadline;
    absl::Time again;
    absl::Status last_refusal;
    Done done;
  };

  void Send(absl::Time now, Pending& pending, Outbox& outbox);

  uint64_t& next_request_id_;
  std::map<uint64_t, Pending> pending_;  // by request id
};

}  // namespace covey::client
