// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "common/runtime/flow_control.h"
#include "server/peer_credits.h"

namespace covey::server {

// Flow control of pushes and pulls on a data loop: the reply to each request tells the peer its
// share of the bytes of requests that may be in flight to the loop (PeerCredits). A credit that the
// actor itself has set is kept.
//
// Owned by the process, outlives its loop; used on the loop's thread.
class RequestCredits : public FlowControl {
 public:
  // `budget_bytes`: bytes of requests that all peers together may have in flight.
  explicit RequestCredits(size_t budget_bytes) : credits_(budget_bytes) {}

  // On the loop's thread.
  void SetBudget(size_t budget_bytes) { credits_.SetBudget(budget_bytes); }

  void Received(absl::Time now, const Message& message) override;
  void Sending(Message& message) override;

 private:
  PeerCredits credits_;
};

}  // namespace covey::server
