// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "common/net/seal/message_opener.h"
#include "common/net/seal/refusal.h"
#include "common/net/seal/refusal_log.h"
#include "common/net/seal/sealed_message.h"

namespace covey {

// What a secured transport does with the messages that arrive: opens them, refuses them, or holds
// them while their sender's registration is newer than this process's view. Order per sender stays.
// Refused messages are counted by reason; those that were held in vain, or were meant for a process
// that listened here before, count as dropped. Actor-confined.
//
// Limits: kHeldMessagesMax messages and kHeldBytesMax bytes are held, each for kHeldFor.
class SealedInbox {
 public:
  static constexpr size_t kHeldMessagesMax = 64;
  static constexpr size_t kHeldBytesMax = 16 << 20;
  static constexpr absl::Duration kHeldFor = absl::Seconds(2);

  struct Options {
    std::shared_ptr<DataKeys> keys;
    uint32_t loop = 0;
    WireLimits limits;
  };

  // Two of a transport's counters.
  struct Counters {
    RefusalCounts& refused;
    uint64_t& dropped;
  };

  // What `counters` refer to, and `refusals`, outlive it.
  SealedInbox(const Options& options, const Counters& counters, RefusalLog& refusals);

  // The message, if it can be opened now.
  std::optional<Message> Receive(absl::Time now, SealedMessage sealed);
  // The next held message that can be opened now. To be called before Receive, until it returns
  // nothing.
  std::optional<Message> NextHeld(absl::Time now);
  bool holds_any() const { return !held_.empty() || !due_.empty(); }

 private:
  struct Held {
    SealedHead head;
    SealedMessage sealed;
    absl::Time until;
  };

  std::optional<Message> Open(absl::Time now, Held message);
  void Hold(absl::Time now, Held message);
  bool HoldsAnyOf(NodeId sender) const;  // among held_
  void Refuse(absl::Time now, const absl::Status& why);

  const std::shared_ptr<DataKeys> keys_;
  const Counters counters_;
  RefusalLog& refusals_;
  MessageOpener opener_;
  uint64_t changes_ = 0;   // DataKeys::changes() when held messages became due
  std::deque<Held> due_;   // to be tried with the present keys; older than held_
  std::deque<Held> held_;  // tried in vain; oldest first
  size_t held_bytes_ = 0;  // of both
};

}  // namespace covey
