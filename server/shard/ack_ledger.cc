// SPDX-License-Identifier: Apache-2.0
#include "server/shard/ack_ledger.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace covey::server {
namespace {

// A successor waits at most this long for the missing pushes of a buffered update.
constexpr absl::Duration kFlushAfter = absl::Seconds(2);

}  // namespace

std::pair<uint64_t, uint64_t> AckLedger::NumberOf(const PushKey& key) {
  const bool is_group = key.producer.kind == Producer::Kind::kGroup;
  return {is_group ? 0 : key.incarnation, key.sequence};
}

const AckLedger::Push* AckLedger::FindPush(const PushKey& key) const {
  const auto entry = entries_.find(key.producer);
  if (entry == entries_.end()) return nullptr;
  const auto push = entry->second.pushes.find(NumberOf(key));
  return push == entry->second.pushes.end() ? nullptr : &push->second;
}

absl::StatusOr<bool> AckLedger::Find(const PushKey& key) const {
  const auto entry = entries_.find(key.producer);
  if (entry == entries_.end()) return false;
  if (key.incarnation < entry->second.incarnation) {
    return absl::AbortedError(absl::StrCat("incarnation ", key.incarnation,
                                           " has been replaced by ", entry->second.incarnation,
                                           "; stop, or join the cluster again"));
  }
  return FindPush(key) != nullptr;
}

void AckLedger::Add(const PushKey& key, Ack ack) {
  Entry& entry = entries_[key.producer];
  entry.incarnation = std::max(entry.incarnation, key.incarnation);
  if (entry.pushes.emplace(NumberOf(key), Push{.ack = ack, .owed = {}}).second) {
    early_ += ack == Ack::kEarly;
  }
}

std::optional<AckLedger::Ack> AckLedger::AckOf(const PushKey& key) const {
  const Push* push = FindPush(key);
  if (push == nullptr) return std::nullopt;
  return push->ack;
}

void AckLedger::OweReply(const PushKey& key, Message reply) {
  if (FindPush(key) == nullptr) return;
  entries_.at(key.producer).pushes.at(NumberOf(key)).owed = std::move(reply);
}

std::optional<Message> AckLedger::TakeRecorded(const PushKey& key) {
  const auto entry = entries_.find(key.producer);
  if (entry == entries_.end()) return std::nullopt;
  const auto push = entry->second.pushes.find(NumberOf(key));
  if (push == entry->second.pushes.end()) return std::nullopt;
  early_ -= push->second.ack == Ack::kEarly;
  std::optional<Message> owed = std::move(push->second.owed);
  entry->second.pushes.erase(push);
  if (entry->second.pushes.empty()) entries_.erase(entry);
  return owed;
}

void AckLedger::UpdateFlush(absl::Time now, bool successor_waits) {
  if (!early_acks_pending() || !successor_waits) {
    flush_at_ = absl::InfiniteFuture();
  } else if (flush_at_ == absl::InfiniteFuture()) {
    flush_at_ = now + kFlushAfter;
  }
}

size_t AckLedger::CountProducers(absl::FunctionRef<bool(const Producer&)> is_counted) const {
  return static_cast<size_t>(
      std::count_if(entries_.begin(), entries_.end(),
                    [&](const auto& entry) { return is_counted(entry.first); }));
}

}  // namespace covey::server
