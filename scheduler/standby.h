#pragma once

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "common/runtime/actor.h"

namespace covey::scheduler {

// Stands where the scheduler's actor will: refuses every request with UNAVAILABLE, saying who
// leads, until the actor that leads is put in its place. Then it only passes on.
//
// Actor-confined; deterministic.
class Standby : public Actor {
 public:
  // Until then. `leader` outlives this. At most once.
  void Lead(Actor& leader) { leader_ = &leader; }
  // What the refusals say: "the leader is at 10.0.0.7:7000".
  void Explain(std::string reason) { reason_ = std::move(reason); }
  bool leads() const { return leader_ != nullptr; }
  const std::string& reason() const { return reason_; }

  void Receive(absl::Time now, const Message& message, Outbox& outbox) override;
  void Wake(absl::Time now, Outbox& outbox) override;
  absl::Time NextWake() const override;

 private:
  Actor* leader_ = nullptr;
  std::string reason_ = "it has just started";
};

}  // namespace covey::scheduler
