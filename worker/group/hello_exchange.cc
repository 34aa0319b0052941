// SPDX-License-Identifier: Apache-2.0
#include "worker/group/hello_exchange.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace covey::worker {

void HelloExchange::Begin(uint32_t rank, uint32_t size) {
  COVEY_CHECK(rank < size);
  *this = HelloExchange();
  rank_ = rank;
  hellos_.resize(size);
}

void HelloExchange::Say(MemberHello hello) {
  COVEY_CHECK(hello.rank == rank_);
  Keep(std::move(hello));
}

void HelloExchange::Hear(MemberHello hello) {
  if (hello.rank != rank_) Keep(std::move(hello));
}

void HelloExchange::Keep(MemberHello hello) {
  std::optional<MemberHello>& known = hellos_[hello.rank];
  if (known) return;
  known = std::move(hello);
  ++known_;
}

bool HelloExchange::Knows(uint32_t first, uint32_t count) const {
  for (uint32_t i = 0; i < count; ++i) {
    if (!hellos_[(first + i) % hellos_.size()]) return false;
  }
  return true;
}

std::vector<HelloExchange::Outgoing> HelloExchange::TakeOutgoing() {
  std::vector<Outgoing> outgoing;
  const auto size = static_cast<uint32_t>(hellos_.size());
  const bool direct = size <= kDirectMax;
  while (distance_ < size) {
    const uint32_t count = direct ? 1 : std::min(distance_, size - distance_);
    if (!Knows(rank_, count)) break;
    Outgoing& next = outgoing.emplace_back();
    next.peer = (rank_ + size - distance_) % size;
    for (uint32_t i = 0; i < count; ++i) next.hellos.push_back(&*hellos_[(rank_ + i) % size]);
    distance_ = direct ? distance_ + 1 : 2 * distance_;
  }
  return outgoing;
}

std::vector<uint32_t> HelloExchange::Missing() const {
  std::vector<uint32_t> missing;
  for (uint32_t rank = 0; rank < hellos_.size(); ++rank) {
    if (!hellos_[rank]) missing.push_back(rank);
  }
  return missing;
}

}  // namespace covey::worker
