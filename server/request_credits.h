// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

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
  // Whether a request is from a node of the job. Others get credits, and no share of the budget.
  using IsFromNode = std::function<bool(const Message&)>;

  // `budget_bytes`: bytes of requests that all nodes together may have in flight.
  RequestCredits(size_t budget_bytes, IsFromNode is_from_node)
      : credits_(budget_bytes), is_from_node_(std::move(is_from_node)) {}

  // On the loop's thread.
  void SetBudget(size_t budget_bytes) { credits_.SetBudget(budget_bytes); }

  void Received(absl::Time now, const Message& message) override;
  void Sending(Message& message) override;

 private:
  PeerCredits credits_;
  const IsFromNode is_from_node_;
};

}  // namespace covey::server
