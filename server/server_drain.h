#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "common/runtime/member.h"

namespace covey::server {

// How a server goes. It asks to be drained, serves on while its shards move to others, and says
// goodbye when the view has it in no chain any more:
//
//   serving ──Begin──▶ asking ──view: draining──▶ draining ──in no chain──▶ left
//      │                 │                           │
//      │                 │ refused, or no answer     │ no other server stays, or the deadline has
//      │                 ▼                           ▼ passed
//      │               left, and its content with it (of tables with no other replica)
//      └── view: draining, because somebody else has asked ──▶ draining
//
// One that says goodbye because it was drained stays, and serves, when a view has it in a chain or
// draining no longer before the scheduler has heard it.
//
// Actor-confined. Deterministic.
class ServerDrain {
 public:
  // `member` and `next_request_id` outlive it.
  ServerDrain(Member& member, uint64_t& next_request_id)
      : member_(member), next_request_id_(next_request_id) {}

  // Wants to be gone at `deadline` at the latest. `reason`: for people, "signal 15".
  void Begin(absl::Time now, std::string reason, absl::Time deadline, Outbox& outbox);
  // True when the message was an answer to this machine.
  bool Receive(absl::Time now, const Message& message, Outbox& outbox);
  // The member's view has changed.
  void FollowView(absl::Time now, Outbox& outbox);
  void Wake(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const;

 private:
  void Ask(absl::Time now, Outbox& outbox);
  // Goes although shards are here.
  void GiveUp(absl::Time now, const std::string& why, Outbox& outbox);
  void Leave(absl::Time now, const std::string& reason, Outbox& outbox);

  Member& member_;
  uint64_t& next_request_id_;
  std::string reason_;  // empty: nobody has asked this process to go
  bool is_over_ = false;
  bool was_drained_ = false;  // that is why it is over
  bool has_consent_ = false;  // the scheduler has said yes
  uint64_t request_id_ = 0;
  absl::Time deadline_ = absl::InfiniteFuture();
  // Gives up when nothing has been heard by then.
  absl::Time unheard_until_ = absl::InfiniteFuture();
  absl::Time again_ = absl::InfiniteFuture();
};

}  // namespace covey::server
