// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"
#include "common/net/message.h"

namespace covey {

// What a loop asks about the pace of its peers (EventLoop::Options::flow_control): a hook that sees
// every message on its way in and out, and may say in the envelope of the latter how much may come.
// The loop itself knows no kind of message.
//
// Called on the loop's thread only. Must not block.
class FlowControl {
 public:
  virtual ~FlowControl() = default;
  // A message has come from the transport, before the actor has it.
  virtual void Received(absl::Time now, const Message& message) = 0;
  // A message is about to go to a port or the transport; its header is filled in.
  virtual void Sending(Message& message) = 0;
};

}  // namespace covey
