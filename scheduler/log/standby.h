// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/runtime/actor.h"

namespace covey::scheduler {

// Takes the place of the scheduler's actor until this scheduler leads:
//
//   standing by ── Lead(actor) ──▶ leading: passes every call on to the actor
//   refuses every request with UNAVAILABLE and the leader's address
//
// Actor-confined; deterministic.
class Standby : public Actor {
 public:
  // This scheduler leads from now on. `leader` outlives this. At most once.
  void Lead(Actor& leader) { leader_ = &leader; }
  // Sets the reason in the refusals: "the leader is at 10.0.0.7:7000".
  void Explain(std::string reason) { reason_ = std::move(reason); }
  bool leads() const { return leader_ != nullptr; }
  const std::string& reason() const { return reason_; }
  // Delivers a message to the leader at its next turn, bypassing the loop's queue, which refuses
  // messages when it is full. For the few messages that are never resent. On the loop's thread.
  void DeliverNext(Message message) { pending_.push_back(std::move(message)); }

  void Receive(absl::Time now, const Message& message, Outbox& outbox) override;
  void Wake(absl::Time now, Outbox& outbox) override;
  absl::Time NextWake() const override;

 private:
  Actor* leader_ = nullptr;
  std::string reason_ = "it has just started";
  std::vector<Message> pending_;
};

}  // namespace covey::scheduler
