// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/net/message.h"
#include "common/net/seal/sealed_head.h"
#include "common/net/seal/sealed_message.h"
#include "common/net/wire.h"
#include "common/security/seal/data_keys.h"
#include "common/security/seal/replay_window.h"

namespace covey {

// Opens what one loop receives. A message that it has opened is from the node and the loop that its
// header names, is meant for this loop, has not been changed, and has not been opened before.
// Created by the loop's transport; actor-confined.
//
// Nothing that a stranger sends makes it keep anything: it remembers a loop of another node from
// the first genuine message on, until the node is gone from the view. It does not come back then,
// because node ids are never reused.
class MessageOpener {
 public:
  MessageOpener(std::shared_ptr<DataKeys> keys, uint32_t loop, const WireLimits& limits)
      : keys_(std::move(keys)), loop_(loop), limits_(limits) {}

  // The head frame, if it is that of a sealed message. INVALID_ARGUMENT, FAILED_PRECONDITION: it is
  // not, as ReadSealedHead says.
  absl::StatusOr<SealedHead> ReadHead(const SealedMessage& sealed) const;

  // Opens `sealed` in place, and moves its frames to the message. `head` is ReadHead's.
  // UNAVAILABLE: the sender is not in the view; `sealed` is unchanged, and a newer view may have
  // it. ABORTED: it is meant for another process, which listened here before. Other errors: it is
  // refused, for the reason that RefusalOf finds in the code.
  absl::StatusOr<Message> Open(const SealedHead& head, SealedMessage& sealed);

 private:
  struct Key {
    uint64_t generation;
    PartCipher cipher;
  };
  struct Sender {
    std::shared_ptr<const DataKeys::Peer> peer;
    ReplayWindow window;
    Key newest;
    std::optional<Key> other;  // of the generation before, as a rule
  };

  // Forgets nodes that are gone.
  void Refresh();
  absl::StatusOr<Key> MakeKey(const DataKeys::Peer& peer, const SealedHead& head) const;
  absl::StatusOr<Message> OpenWith(const DataKeys::Peer& peer, const SealedHead& head,
                                   PartCipher& cipher, SealedMessage& sealed) const;
  absl::StatusOr<Message> OpenOfKnown(Sender& sender, const SealedHead& head,
                                      SealedMessage& sealed) const;
  absl::StatusOr<Message> OpenFirst(const SealedHead& head, SealedMessage& sealed);

  const std::shared_ptr<DataKeys> keys_;
  const uint32_t loop_;
  const WireLimits limits_;
  uint64_t changes_ = 0;  // DataKeys::changes() at the last Refresh
  absl::btree_map<Address, Sender> senders_;
};

}  // namespace covey
