// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "client/engine/control_requests.h"
#include "client/engine/request_engine.h"
#include "client/engine/table_initializations.h"
#include "common/runtime/actor.h"
#include "common/runtime/member.h"

namespace covey::client {

// The loop of a plain client, and the client's half of a worker's: membership, pushes and pulls,
// requests to the scheduler, initial values of tables. Dispatches only; the machines do the work.
//
// Actor-confined. Deterministic in its options.
class ClientActor : public Actor {
 public:
  struct Options {
    Member::Options member;
    RequestEngine::Options client;
  };

  explicit ClientActor(const Options& options);

  void Receive(absl::Time now, const Message& message, Outbox& outbox) override;
  void Wake(absl::Time now, Outbox& outbox) override;
  absl::Time NextWake() const override;

  Member& member() { return member_; }
  RequestEngine& engine() { return engine_; }
  ControlRequests& control() { return control_; }
  TableInitializations& initializations() { return initializations_; }
  uint64_t& next_request_id() { return next_request_id_; }

  // Adds a callback for changes of membership or view. The callbacks run in the order of these
  // calls, after the machines have seen the change.
  void OnChange(std::function<void(absl::Time, Outbox&)> callback) {
    on_change_.push_back(std::move(callback));
  }

 private:
  void MembershipChanged(absl::Time now, Outbox& outbox);

  uint64_t next_request_id_ = 1;
  Member member_;
  RequestEngine engine_;
  ControlRequests control_;
  TableInitializations initializations_;
  std::vector<std::function<void(absl::Time, Outbox&)>> on_change_;
};

}  // namespace covey::client
