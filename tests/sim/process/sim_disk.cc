// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/process/sim_disk.h"

#include <algorithm>
#include <utility>

namespace covey::sim {

void SimDisk::Append(std::string bytes, std::function<void()> done) {
  pending_.push_back({std::move(bytes), std::move(done)});
  last_ = std::max(last_, simulator_.now() + delay_max_ * random_.Uniform());
  simulator_.At(last_, [this, life = life_] {
    if (life != life_) return;
    const Pending durable = std::move(pending_.front());
    pending_.pop_front();
    content_ += durable.bytes;
    durable.done();
  });
}

void SimDisk::Crash() {
  ++life_;
  last_ = absl::InfinitePast();
  if (pending_.empty()) return;
  simulator_.Count("disk_lost_unsynced");
  const std::string& torn = pending_.front().bytes;
  const size_t kept = random_.Below(torn.size() + 1);
  if (kept > 0) simulator_.Count("disk_torn_tail");
  content_.append(torn, 0, kept);
  pending_.clear();
}

}  // namespace covey::sim
