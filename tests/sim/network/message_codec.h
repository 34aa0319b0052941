// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/base/random.h"
#include "common/net/message.h"
#include "common/simulation/simulator.h"

namespace covey::sim {

// How messages are encoded: not at all, through Protobuf, or through the wire's bytes.
enum class Codec { kNone, kProtobuf, kWire };

// Encodes and decodes each message of a network, and may flip a bit in between. The wire's checks
// must find a flipped bit of the header here. A flipped bit of the data arrives, and the receiver
// must find it.
//
// Actor-confined. Simulator and draws outlive it. Deterministic in its draws.
class MessageCodec {
 public:
  MessageCodec(Codec codec, Random& random, Simulator& simulator)
      : codec_(codec), random_(random), simulator_(simulator) {}

  // `corruption`: the probability of a flipped bit. False: a flipped bit was found, and the message
  // is not delivered.
  bool Pass(Message& message, double corruption);

 private:
  // Flips a bit of a frame.
  void Damage(Message& message);
  // Both return as Pass does.
  bool PassProtobuf(Message& message, bool corrupt);
  bool PassWire(Message& message, bool corrupt);

  const Codec codec_;
  Random& random_;
  Simulator& simulator_;
};

}  // namespace covey::sim
