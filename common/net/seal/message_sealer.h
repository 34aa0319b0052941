// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/net/message.h"
#include "common/security/seal/data_keys.h"

namespace covey {

// Seals what one loop sends. It numbers the messages to each loop, and never uses a number twice
// under one key, whatever becomes of the message. Created by the loop's transport; actor-confined.
// There is one per loop of a node: DataKeys::ClaimLoop.
class MessageSealer {
 public:
  MessageSealer(std::shared_ptr<DataKeys> keys, uint32_t loop)
      : keys_(std::move(keys)), loop_(loop) {}

  // Size of the head frame of a message that has this one when it is not sealed.
  static size_t HeadBytes(const Message& message, size_t plain_head_bytes);

  // Writes the head frame, and each of the message's frames to the memory of the same place in
  // `frames`. Preconditions: `head` has HeadBytes bytes, `frames` have the sizes of the message's,
  // and the message is unchanged since PrepareHead (wire.h). FAILED_PRECONDITION: this process has
  // not joined, or the message says it is from another loop. NOT_FOUND, and other errors of
  // DataKeys::Find: the receiver has no key. After an error nothing of it may be sent.
  absl::Status Seal(const Message& message, std::span<uint8_t> head,
                    std::span<const std::span<uint8_t>> frames);

 private:
  struct Receiver {
    std::shared_ptr<const DataKeys::Peer> peer;
    uint64_t next = 0;  // number of the next message
    uint64_t generation = 0;
    PartCipher cipher;  // of `generation`
  };

  // Forgets nodes that are gone.
  void Refresh();
  // With the cipher for the message `next`.
  absl::StatusOr<Receiver*> ReceiverAt(const Address& address);

  const std::shared_ptr<DataKeys> keys_;
  const uint32_t loop_;
  uint64_t changes_ = 0;  // DataKeys::changes() at the last Refresh
  absl::btree_map<Address, Receiver> receivers_;
  // No receiver that was forgotten has had a number from here on; so a node that came back under
  // the same key would not have one twice.
  uint64_t first_number_ = 0;
};

}  // namespace covey
