// SPDX-License-Identifier: Apache-2.0
#include "common/simulation/simulator.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace covey {

Random Simulator::Draws(Stream stream, uint64_t which) const {
  return Random(MixBits(seed_)).Split(static_cast<uint64_t>(stream)).Split(which);
}

void Simulator::At(absl::Time when, std::function<void()> work) {
  queue_.push({std::max(when, now_), next_sequence_++, std::move(work)});
}

bool Simulator::RunOne(absl::Time until) {
  if (queue_.empty() || queue_.top().when > until) {
    now_ = std::max(now_, until);
    return false;
  }
  // The queue orders by time and sequence only, so the work may be moved out of its top element.
  Event event = std::move(const_cast<Event&>(queue_.top()));
  queue_.pop();
  now_ = event.when;
  ++events_;
  Note(static_cast<uint64_t>(absl::ToUnixNanos(now_)));
  event.work();
  return true;
}

void Simulator::Note(absl::string_view bytes) {
  while (!bytes.empty()) {
    uint64_t word = 0;
    const size_t size = std::min(bytes.size(), sizeof(word));
    std::memcpy(&word, bytes.data(), size);
    Note(word ^ size << 56);
    bytes.remove_prefix(size);
  }
}

}  // namespace covey
