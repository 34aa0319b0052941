// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/cluster/ids.h"
#include "common/security/seal/node_key.h"
#include "common/security/seal/part_cipher.h"
#include "common/security/secret.h"

namespace covey {

// Messages of one loop to another one, in a job. Each direction has keys of its own.
struct Direction {
  uint64_t job = 0;
  Address sender;
  Address receiver;
  NodeKey::Public sender_key = {};
  NodeKey::Public receiver_key = {};
};

// A key seals 2^16 messages, at most 2^38 blocks of 16 bytes. So the chance to tell its output from
// noise stays below 2^-52, where SP 800-38D asks for 2^-32, and deriving keys costs nothing.
inline constexpr int kMessagesPerKeyLog2 = 16;
// Number of the key that seals the message with this number.
constexpr uint64_t GenerationOf(uint64_t message) { return message >> kMessagesPerKeyLog2; }

// The secret from which both ends of all directions between two nodes derive keys; `agreed` is
// NodeKey::Agree's. Pure.
absl::StatusOr<Secret> PairSecret(const Secret& agreed);

// The cipher of a generation of a direction. `pair` is PairSecret's. About 3 us. Pure.
absl::StatusOr<PartCipher> MakeCipher(PartCipher::Use use, const Secret& pair,
                                      const Direction& direction, uint64_t generation);

}  // namespace covey
