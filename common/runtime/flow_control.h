// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"
#include "common/net/message.h"

namespace covey {

// Controls the pace of a loop's peers (EventLoop::Options::flow_control): a hook that sees every
// message that arrives or leaves, and may grant credit in the envelope of messages that leave. The
// loop itself does not distinguish kinds of messages.
//
// Called on the loop's thread only. Must not block.
class FlowControl {
 public:
  virtual ~FlowControl() = default;
  // A message has arrived from the transport; the actor has not seen it yet.
  virtual void Received(absl::Time now, const Message& message) = 0;
  // A message is about to go to a port or the transport; its header is filled in.
  virtual void Sending(Message& message) = 0;
};

}  // namespace covey
