// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/slice_sender.h"

#include <functional>
#include <queue>
#include <utility>

#include "common/base/small_limits.h"
#include "common/cluster/limits.h"

namespace covey::worker {
namespace {

constexpr size_t kSmallSlicesInFlight = 2;

size_t BytesOf(const Message& message) {
  return message.frames.empty() ? 0 : message.frames[0].size();
}

}  // namespace

void SliceSender::Queue(Item item) {
  const Turn turn(item.priority, ++last_queued_);
  peers_[item.peer].queued.emplace(turn, std::move(item));
}

bool SliceSender::MaySend(const Peer& peer) const {
  if (peer.queued.empty() ||
      slices_in_flight_ >= LimitInForce(kGroupSlicesInFlightMax, kSmallSlicesInFlight)) {
    return false;
  }
  const size_t bytes = BytesOf(peer.queued.begin()->second.message);
  if (peer.bytes > 0 && peer.bytes + bytes > kGroupBytesInFlightPerPeer) return false;
  return bytes_in_flight_ == 0 || bytes_in_flight_ + bytes <= kGroupBytesInFlightMax;
}

void SliceSender::Send(Peer& peer, Outbox& outbox) {
  Item& next = peer.queued.begin()->second;
  const size_t bytes = BytesOf(next.message);
  peer.bytes += bytes;
  bytes_in_flight_ += bytes;
  ++slices_in_flight_;
  ++sent_to_[next.peer];
  peer.sent.push_back(
      {.collective = next.collective, .frame = bytes == 0 ? Buffer() : next.message.frames[0]});
  outbox.Send(std::move(next.message));
  peer.queued.erase(peer.queued.begin());
}

bool SliceSender::Advance(Outbox& outbox, Released released) {
  TakeBack(released);
  using Head = std::pair<Turn, Peer*>;
  const auto later = [](const Head& a, const Head& b) { return a.first > b.first; };
  std::priority_queue<Head, std::vector<Head>, decltype(later)> heads(later);
  const auto consider = [&](Peer& peer) {
    if (MaySend(peer)) heads.emplace(peer.queued.begin()->first, &peer);
  };
  for (auto& [node, peer] : peers_) consider(peer);
  bool sent = false;
  while (!heads.empty()) {
    Peer& peer = *heads.top().second;
    heads.pop();
    // Others may have used up what they share since this one was considered.
    if (MaySend(peer)) {
      Send(peer, outbox);
      sent = true;
    }
    consider(peer);
  }
  TakeBack(released);  // Messages without a frame have nothing to wait for.
  return sent;
}

void SliceSender::CancelQueued(Released released) {
  std::vector<uint64_t> cancelled;
  for (auto& [node, peer] : peers_) {
    for (const auto& [turn, item] : std::exchange(peer.queued, {})) {
      cancelled.push_back(item.collective);
    }
  }
  for (const uint64_t collective : cancelled) released(collective);
}

void SliceSender::CancelQueued(uint64_t collective, Released released) {
  size_t cancelled = 0;
  for (auto& [node, peer] : peers_) {
    cancelled += std::erase_if(
        peer.queued, [&](const auto& queued) { return queued.second.collective == collective; });
  }
  for (; cancelled > 0; --cancelled) released(collective);
}

uint64_t SliceSender::sent_to(NodeId peer) const {
  const auto found = sent_to_.find(peer);
  return found == sent_to_.end() ? 0 : found->second;
}

std::vector<NodeId> SliceSender::peers_in_flight() const {
  std::vector<NodeId> nodes;
  for (const auto& [node, peer] : peers_) {
    if (!peer.sent.empty()) nodes.push_back(node);
  }
  return nodes;
}

void SliceSender::TakeBack(Released released) {
  std::vector<uint64_t> free;
  for (auto entry = peers_.begin(); entry != peers_.end();) {
    Peer& peer = entry->second;
    // Any of them, not only the oldest: a member of the same process keeps what comes too soon.
    std::erase_if(peer.sent, [&](const Sent& sent) {
      if (!sent.frame.empty() && !sent.frame.IsUnique()) return false;
      peer.bytes -= sent.frame.size();
      bytes_in_flight_ -= sent.frame.size();
      --slices_in_flight_;
      free.push_back(sent.collective);
      return true;
    });
    entry = peer.sent.empty() && peer.queued.empty() ? peers_.erase(entry) : std::next(entry);
  }
  for (const uint64_t collective : free) released(collective);
}

}  // namespace covey::worker
