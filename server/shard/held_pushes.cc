#include "server/shard/held_pushes.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace covey::server {

std::pair<uint64_t, uint64_t> HeldPushes::NumberOf(const PushKey& key) {
  const bool is_group = key.producer.kind == Producer::Kind::kGroup;
  return {is_group ? 0 : key.incarnation, key.sequence};
}

const HeldPushes::Push* HeldPushes::FindPush(const PushKey& key) const {
  const auto entry = entries_.find(key.producer);
  if (entry == entries_.end()) return nullptr;
  const auto push = entry->second.pushes.find(NumberOf(key));
  return push == entry->second.pushes.end() ? nullptr : &push->second;
}

absl::StatusOr<bool> HeldPushes::Find(const PushKey& key) const {
  const auto entry = entries_.find(key.producer);
  if (entry == entries_.end()) return false;
  if (key.incarnation < entry->second.incarnation) {
    return absl::AbortedError(absl::StrCat("incarnation ", key.incarnation,
                                           " has been replaced by ", entry->second.incarnation,
                                           "; stop, or join the cluster anew"));
  }
  return FindPush(key) != nullptr;
}

void HeldPushes::Add(const PushKey& key, bool pledged) {
  Entry& entry = entries_[key.producer];
  entry.incarnation = std::max(entry.incarnation, key.incarnation);
  if (entry.pushes.emplace(NumberOf(key), Push{.pledged = pledged, .receipt = {}}).second) {
    pledged_ += pledged;
  }
}

bool HeldPushes::IsPledged(const PushKey& key) const {
  const Push* push = FindPush(key);
  return push != nullptr && push->pledged;
}

void HeldPushes::SetReceipt(const PushKey& key, Message reply) {
  if (FindPush(key) == nullptr) return;
  entries_.at(key.producer).pushes.at(NumberOf(key)).receipt = std::move(reply);
}

std::optional<Message> HeldPushes::Take(const PushKey& key) {
  const auto entry = entries_.find(key.producer);
  if (entry == entries_.end()) return std::nullopt;
  const auto push = entry->second.pushes.find(NumberOf(key));
  if (push == entry->second.pushes.end()) return std::nullopt;
  pledged_ -= push->second.pledged;
  std::optional<Message> receipt = std::move(push->second.receipt);
  entry->second.pushes.erase(push);
  if (entry->second.pushes.empty()) entries_.erase(entry);
  return receipt;
}

}  // namespace covey::server
