// SPDX-License-Identifier: Apache-2.0
#include "common/security/seal/data_keys.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace covey {
namespace {

std::optional<NodeKey::Public> KeyOf(const proto::Node& node) {
  NodeKey::Public key;
  if (node.state() == proto::Node::DEAD || node.data_key().size() != key.size()) {
    return std::nullopt;
  }
  std::copy(node.data_key().begin(), node.data_key().end(), key.begin());
  return key;
}

}  // namespace

absl::StatusOr<std::shared_ptr<DataKeys>> DataKeys::Make(uint64_t job,
                                                         absl::Duration heard_after_leaving) {
  COVEY_ASSIGN_OR_RETURN(NodeKey own, NodeKey::Make());
  return std::shared_ptr<DataKeys>(new DataKeys(job, heard_after_leaving, std::move(own)));
}

std::string DataKeys::public_key() const {
  return std::string(own_.public_half().begin(), own_.public_half().end());
}

void DataKeys::Follow(NodeId self, const ClusterView& view) {
  MutexLock lock(mutex_);
  const bool is_new = std::exchange(self_, self) != self;
  const bool is_newer = Adopt(view);
  DropSilenced(MonotonicNow());
  if (is_newer || is_new) changes_.fetch_add(1, std::memory_order_release);
}

bool DataKeys::Adopt(const ClusterView& view) {
  if (view.epoch() <= epoch_) return false;
  epoch_ = view.epoch();
  absl::btree_map<NodeId, Entry> nodes;
  const absl::btree_set<NodeId> refused_before = std::exchange(refused_, {});
  for (const proto::Node& node : view.proto().nodes()) {
    const NodeId id(node.id());
    const std::optional<NodeKey::Public> key = KeyOf(node);
    const bool has_left = node.state() == proto::Node::LEFT;
    if (!key || (has_left && refused_before.contains(id))) {
      refused_.insert(id);
      continue;
    }
    const Incarnation incarnation(node.incarnation());
    const auto before = nodes_.find(id);
    const bool is_same = before != nodes_.end() && before->second.key == *key &&
                         before->second.incarnation == incarnation;
    Entry& entry = nodes[id];
    entry = is_same ? before->second : Entry{.incarnation = incarnation, .key = *key};
    if (has_left && entry.heard_until == absl::InfiniteFuture()) {
      entry.heard_until = MonotonicNow() + heard_after_leaving_;
    }
  }
  nodes_ = std::move(nodes);
  return true;
}

uint64_t DataKeys::changes() {
  const int64_t next_drop = next_drop_.load(std::memory_order_relaxed);
  if (next_drop != kNever && absl::ToUnixNanos(MonotonicNow()) >= next_drop) {
    MutexLock lock(mutex_);
    const size_t known = nodes_.size();
    DropSilenced(MonotonicNow());
    if (nodes_.size() != known) changes_.fetch_add(1, std::memory_order_release);
  }
  return changes_.load(std::memory_order_acquire);
}

void DataKeys::DropSilenced(absl::Time now) {
  absl::Time next_drop = absl::InfiniteFuture();
  for (auto node = nodes_.begin(); node != nodes_.end();) {
    if (node->second.heard_until <= now) {
      refused_.insert(node->first);
      node = nodes_.erase(node);
      continue;
    }
    next_drop = std::min(next_drop, node->second.heard_until);
    ++node;
  }
  next_drop_.store(absl::ToUnixNanos(next_drop), std::memory_order_relaxed);
}

NodeId DataKeys::self() const {
  MutexLock lock(mutex_);
  return self_;
}

absl::StatusOr<std::shared_ptr<const DataKeys::Peer>> DataKeys::Find(NodeId node) {
  MutexLock lock(mutex_);
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) {
    if (refused_.contains(node)) {
      return absl::FailedPreconditionError(
          absl::StrCat("node ", node.value(), " is dead, has left, or has registered no key"));
    }
    return absl::NotFoundError(absl::StrCat("node ", node.value(), " is not in the view"));
  }
  Entry& entry = found->second;
  if (entry.peer == nullptr) {
    COVEY_ASSIGN_OR_RETURN(const Secret agreed, own_.Agree(entry.key));
    COVEY_ASSIGN_OR_RETURN(Secret pair, PairSecret(agreed));
    entry.peer = std::make_shared<const Peer>(Peer{
        .node = node, .incarnation = entry.incarnation, .key = entry.key, .pair = std::move(pair)});
  }
  return entry.peer;
}

bool DataKeys::Knows(const Peer& peer) const {
  MutexLock lock(mutex_);
  const auto found = nodes_.find(peer.node);
  return found != nodes_.end() && found->second.peer.get() == &peer;
}

Direction DataKeys::To(const Peer& peer, uint32_t own_loop, uint32_t peer_loop) const {
  return {.job = job_,
          .sender = {self(), own_loop},
          .receiver = {peer.node, peer_loop},
          .sender_key = own_.public_half(),
          .receiver_key = peer.key};
}

Direction DataKeys::From(const Peer& peer, uint32_t peer_loop, uint32_t own_loop) const {
  return {.job = job_,
          .sender = {peer.node, peer_loop},
          .receiver = {self(), own_loop},
          .sender_key = peer.key,
          .receiver_key = own_.public_half()};
}

bool DataKeys::ClaimLoop(uint32_t loop) {
  MutexLock lock(mutex_);
  return claimed_.insert(loop).second;
}

}  // namespace covey
