// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/process/disk_faults.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace covey::sim {
namespace {

constexpr absl::Duration kFullMax = absl::Seconds(5);
constexpr absl::Duration kSlowMax = absl::Seconds(5);
// A fault hits one of the first system calls of an operation.
constexpr uint64_t kCallsHit = 4;

}  // namespace

absl::Duration DiskFaults::DrawDelay() {
  const double slowness = simulator_.now() < slow_until_ && !healed_ ? options_.slowness : 1;
  return absl::Nanoseconds(1) + options_.delay_max * (slowness * random_.Uniform());
}

void DiskFaults::Plan(MemoryFolder& folder, bool writes) {
  if (healed_) return;
  const absl::Time now = simulator_.now();
  const uint64_t call = folder.operations() + 1 + random_.Below(kCallsHit);
  if (now < full_until_ && writes) {
    folder.PlanFault(folder.operations() + 1, MemoryFolder::Fault::kNoSpace);
  }
  if (!random_.Chance(options_.chance)) return;
  switch (random_.Below(4)) {
    case 0:
      simulator_.Count(absl::StrCat(name_, "_io_error"));
      return folder.PlanFault(call, MemoryFolder::Fault::kIoError);
    case 1:
      return folder.PlanFault(call, MemoryFolder::Fault::kShortWrite);
    case 2:
      simulator_.Count(absl::StrCat(name_, "_full"));
      full_until_ = now + kFullMax * random_.Uniform();
      return;
    default:
      simulator_.Count(absl::StrCat(name_, "_slow"));
      slow_until_ = now + kSlowMax * random_.Uniform();
      return;
  }
}

}  // namespace covey::sim
