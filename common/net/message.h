// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "common/cluster/ids.h"
#include "proto/envelope.pb.h"

namespace covey {

struct Identity;

// What actors exchange: a small typed envelope, and beside it raw tensor frames, which are never
// copied. A value; moving is cheap, copying shares the frames.
struct Message {
  proto::Envelope envelope;
  absl::InlinedVector<Buffer, 1> frames;
  // The connection it arrived on, meaningful only to the transport that delivered it; 0 = none. A
  // reply copies it, and so returns the same way even to a peer that listens nowhere.
  uint64_t connection = 0;
  // Who has sent it: the identity in the certificate of a call to the scheduler. Null = a part of
  // this process, or a caller that has shown none because this scheduler has none itself.
  std::shared_ptr<const Identity> caller;

  Address from() const { return {NodeId(envelope.header().node()), envelope.from_loop()}; }
  Address to() const { return {NodeId(envelope.to_node()), envelope.to_loop()}; }
  Incarnation incarnation() const { return Incarnation(envelope.header().incarnation()); }
  void set_to(const Address& address) {
    envelope.set_to_node(address.node.value());
    envelope.set_to_loop(address.loop);
  }
};

// An empty reply to `request`: addressed to its sender, same request id and connection. The caller
// sets a body; the sending loop fills in the sender's half of the header.
Message MakeReply(const Message& request);

// absl::Status <-> the envelope's status. Unknown codes become INTERNAL.
void SetStatus(const absl::Status& status, Message& reply);
absl::Status StatusOf(const Message& reply);

// "push_request", for logs and counters; "nothing" when the body is not set.
std::string BodyName(const proto::Envelope& envelope);

}  // namespace covey
