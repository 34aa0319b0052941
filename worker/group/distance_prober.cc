// SPDX-License-Identifier: Apache-2.0
#include "worker/group/distance_prober.h"

#include <algorithm>
#include <utility>

namespace covey::worker {

void DistanceProber::Begin(absl::Time now, uint32_t rank, uint32_t size) {
  *this = DistanceProber();
  peers_.resize(size);
  seconds_.resize(size);
  open_ = size - 1;
  peers_[rank].over = true;
  // Everybody begins with another peer.
  for (uint32_t i = 1; i < size; ++i) Send(now, (rank + i) % size, kFirstContact);
}

void DistanceProber::Send(absl::Time now, uint32_t rank, absl::Duration patience) {
  Peer& peer = peers_[rank];
  peer.number = ++last_number_;
  peer.sent = now;
  peer.deadline = now + patience;
  probes_.push_back({.peer = rank, .number = peer.number});
}

void DistanceProber::End(Peer& peer) {
  if (peer.answers > 0) --probing_;
  peer.number = 0;
  peer.deadline = absl::InfiniteFuture();
  peer.over = true;
  --open_;
}

void DistanceProber::Next(absl::Time now) {
  while (probing_ < kPeersAtATime && !answered_.empty()) {
    ++probing_;
    Send(now, answered_.front(), kPatience);
    answered_.pop_front();
  }
}

std::vector<DistanceProber::Probe> DistanceProber::TakeProbes() {
  return std::exchange(probes_, {});
}

void DistanceProber::Echo(absl::Time now, uint32_t rank, uint64_t number) {
  if (rank >= peers_.size() || number == 0 || peers_[rank].number != number) return;
  Peer& peer = peers_[rank];
  if (++peer.answers == 1) {
    peer.number = 0;
    peer.deadline = absl::InfiniteFuture();
    answered_.push_back(rank);
  } else {
    const auto took = static_cast<float>(absl::ToDoubleSeconds(now - peer.sent));
    float& shortest = seconds_[rank];
    if (shortest == 0 || took < shortest) shortest = took;
    if (peer.answers > kRounds) {
      End(peer);
    } else {
      Send(now, rank, kPatience);
    }
  }
  Next(now);
}

void DistanceProber::Wake(absl::Time now) {
  for (Peer& peer : peers_) {
    if (!peer.over && now >= peer.deadline) End(peer);
  }
  Next(now);
}

absl::Time DistanceProber::NextWake() const {
  absl::Time next = absl::InfiniteFuture();
  for (const Peer& peer : peers_) next = std::min(next, peer.deadline);
  return next;
}

}  // namespace covey::worker
