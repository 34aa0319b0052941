// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/limits/ring_limit.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <span>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/tensor/kernels.h"

namespace covey::cli {

// The memory that both map. One process writes, the other reads; indices only grow.
struct RingMemory {
  static constexpr uint64_t kSlots = 16;
  static constexpr uint64_t kSlotFloats = (256 << 10) / sizeof(float);

  struct Slot {
    alignas(64) float values[kSlotFloats];
    uint64_t floats;
  };

  // 1 during a turn; the partner sleeps on it otherwise.
  alignas(64) std::atomic<uint32_t> active;
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
  alignas(64) Slot slots[kSlots];
};

namespace {

// Yields now and then: the other process may wait for this core.
constexpr int kSpinsBeforeYield = 2000;

template <typename Condition>
void SpinUntil(const Condition& condition) {
  for (int spins = 0; !condition(); ++spins) {
    if (spins % kSpinsBeforeYield == kSpinsBeforeYield - 1) sched_yield();
  }
}

void Futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

absl::StatusOr<RingMemory*> Map(int descriptor) {
  void* memory =
      mmap(nullptr, sizeof(RingMemory), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return absl::ErrnoToStatus(errno, "mapping the ring");
  return static_cast<RingMemory*>(memory);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RingLimit>> RingLimit::Start(const LimitLoad& load) {
  auto limit = absl::WrapUnique(new RingLimit(load));
  limit->descriptor_ = memfd_create("covey-bench-ring", MFD_CLOEXEC);
  if (limit->descriptor_ < 0 || ftruncate(limit->descriptor_, sizeof(RingMemory)) != 0) {
    return absl::ErrnoToStatus(errno, "making the ring");
  }
  COVEY_ASSIGN_OR_RETURN(limit->ring_, Map(limit->descriptor_));
  COVEY_ASSIGN_OR_RETURN(limit->partner_,
                         Partner::Start(absl::StrCat("ring /proc/", getpid(), "/fd/",
                                                     limit->descriptor_, " ", load.bytes)));
  limit->lanes_ = MakeLanes(load.bytes, load.lanes);
  return limit;
}

RingLimit::~RingLimit() {
  partner_.reset();
  if (ring_ != nullptr) munmap(ring_, sizeof(RingMemory));
  if (descriptor_ >= 0) close(descriptor_);
}

absl::StatusOr<Sample> RingLimit::Transfer() {
  RingMemory& ring = *ring_;
  ring.active.store(1, std::memory_order_release);
  Futex(ring.active, FUTEX_WAKE, 1);
  Sample sample;
  uint64_t written = ring.written.load(std::memory_order_relaxed);
  const absl::Time begin = MonotonicNow();
  do {
    const LaneMemory& lane = lanes_[sample.operations++ % lanes_.size()];
    for (uint64_t offset = 0; offset < lane.size();) {
      SpinUntil(
          [&] { return written - ring.read.load(std::memory_order_acquire) < RingMemory::kSlots; });
      RingMemory::Slot& slot = ring.slots[written % RingMemory::kSlots];
      const uint64_t size = std::min<uint64_t>(lane.size() - offset, sizeof(slot.values));
      std::memcpy(slot.values, lane.data() + offset, size);
      slot.floats = size / sizeof(float);
      ring.written.store(++written, std::memory_order_release);
      offset += size;
    }
  } while (MonotonicNow() - begin < load_.duration);
  SpinUntil([&] { return ring.read.load(std::memory_order_acquire) == written; });
  const absl::Duration elapsed = MonotonicNow() - begin;
  ring.active.store(0, std::memory_order_release);
  sample.bytes = sample.operations * load_.bytes;
  sample.values = {static_cast<double>(sample.bytes) / 1e9 / absl::ToDoubleSeconds(elapsed)};
  return sample;
}

absl::Status ServeRingLimit(const std::string& path, uint64_t bytes) {
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, absl::StrCat("opening ", path));
  COVEY_ASSIGN_OR_RETURN(RingMemory* const mapped, Map(descriptor));
  RingMemory& ring = *mapped;
  std::vector<float> table(bytes / sizeof(float), 0.0f);
  COVEY_RETURN_IF_ERROR(PrintAddress("ready"));
  size_t next = 0;
  uint64_t read = 0;
  for (;;) {
    while (ring.active.load(std::memory_order_acquire) == 0) Futex(ring.active, FUTEX_WAIT, 0);
    SpinUntil([&] {
      return ring.written.load(std::memory_order_acquire) != read ||
             ring.active.load(std::memory_order_acquire) == 0;
    });
    if (ring.written.load(std::memory_order_acquire) == read) continue;
    const RingMemory::Slot& slot = ring.slots[read % RingMemory::kSlots];
    AddInto(std::span(table).subspan(next, slot.floats), std::span(slot.values, slot.floats));
    next += slot.floats;
    if (next == table.size()) next = 0;
    ring.read.store(++read, std::memory_order_release);
  }
}

}  // namespace covey::cli
