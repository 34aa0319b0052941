#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "common/net/message.h"
#include "server/replication/producers.h"

namespace covey::server {

// Pushes that a primary has received and not applied yet: with Producers, what tells a duplicate
// from news. They belong to no record of the shard's history, so they are lost with the primary, and
// whoever pushed is told so: it keeps the push until it hears that the push is durable.
//
// Actor-confined. Deterministic. As many as the update gate holds.
class HeldPushes {
 public:
  // Whether the push is held. ABORTED: a newer incarnation of its producer has pushed.
  absl::StatusOr<bool> Find(const PushKey& key) const;

  // `pledged`: its sender was told that it is durable, because the chain was one server; so this
  // server must not go before it is applied.
  void Add(const PushKey& key, bool pledged);
  bool IsPledged(const PushKey& key) const;
  // An answer that goes out once the push is durable; a newer one replaces it. Without effect unless
  // it is held.
  void SetReceipt(const PushKey& key, Message reply);
  // It is part of a record now. The answer that is owed, if one is.
  std::optional<Message> Take(const PushKey& key);

  size_t pledged() const { return pledged_; }
  // Producers of which pushes are held.
  size_t producers() const { return entries_.size(); }
  bool Knows(const Producer& producer) const { return entries_.contains(producer); }

 private:
  struct Push {
    bool pledged = false;
    std::optional<Message> receipt;
  };
  struct Entry {
    uint64_t incarnation = 0;  // highest
    // By incarnation and sequence; of a group by sequence alone, because a new generation goes on
    // with its steps.
    absl::btree_map<std::pair<uint64_t, uint64_t>, Push> pushes;
  };
  static std::pair<uint64_t, uint64_t> NumberOf(const PushKey& key);
  const Push* FindPush(const PushKey& key) const;

  absl::btree_map<Producer, Entry> entries_;
  size_t pledged_ = 0;
};

}  // namespace covey::server
