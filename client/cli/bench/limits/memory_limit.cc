// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/limits/memory_limit.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "absl/memory/memory.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/bench/limits/piece_loop.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace covey::cli {

absl::StatusOr<Sample> MemoryLimit::Copy() {
  const std::span<float> from = memory_.array(0), to = memory_.array(1);
  return RunPieces({.bytes = bytes_, .duration = duration_, .moved_per_byte = 1},
                   [&](uint64_t offset, uint64_t size) {
                     const uint64_t first = offset / sizeof(float);
                     std::memcpy(&to[first], &from[first], size);
                   });
}

absl::StatusOr<Sample> MemoryLimit::Stream() {
  const float* const a = memory_.array(0).data();
  const float* const b = memory_.array(1).data();
  float* const c = memory_.array(2).data();
  return RunPieces({.bytes = bytes_, .duration = duration_, .moved_per_byte = 3},
                   [&](uint64_t offset, uint64_t size) {
                     const uint64_t end = (offset + size) / sizeof(float);
                     for (uint64_t i = offset / sizeof(float); i < end; ++i) c[i] = a[i] + b[i];
                   });
}

absl::StatusOr<std::unique_ptr<ProcessCopyLimit>> ProcessCopyLimit::Start(const LimitLoad& load) {
  auto limit = absl::WrapUnique(new ProcessCopyLimit(load));
  COVEY_ASSIGN_OR_RETURN(limit->partner_, Partner::Start(absl::StrCat("memory ", load.bytes)));
  if (!absl::SimpleAtoi(limit->partner_->address(), &limit->address_)) {
    return absl::UnavailableError("the other process printed no address of its memory");
  }
  limit->lanes_ = MakeLanes(load.bytes, load.lanes);
  COVEY_RETURN_IF_ERROR(limit->CopyTable(limit->lanes_[0]));
  return limit;
}

absl::Status ProcessCopyLimit::CopyTable(LaneMemory& lane) const {
  for (uint64_t done = 0; done < lane.size();) {
    const iovec here = {.iov_base = lane.data() + done, .iov_len = lane.size() - done};
    const iovec there = {.iov_base = reinterpret_cast<void*>(address_ + done),
                         .iov_len = lane.size() - done};
    const ssize_t copied = process_vm_readv(partner_->pid(), &here, 1, &there, 1, 0);
    if (copied <= 0) return absl::ErrnoToStatus(errno, "reading another process's memory");
    done += static_cast<uint64_t>(copied);
  }
  return absl::OkStatus();
}

absl::StatusOr<Sample> ProcessCopyLimit::Transfer() {
  Sample sample;
  const absl::Time begin = MonotonicNow();
  do {
    COVEY_RETURN_IF_ERROR(CopyTable(lanes_[sample.operations++ % lanes_.size()]));
  } while (MonotonicNow() - begin < load_.duration);
  sample.bytes = sample.operations * load_.bytes;
  sample.values = {static_cast<double>(sample.bytes) / 1e9 /
                   absl::ToDoubleSeconds(MonotonicNow() - begin)};
  return sample;
}

absl::Status ServeProcessCopyLimit(uint64_t bytes) {
  const LaneMemory table(bytes, 1);
  COVEY_RETURN_IF_ERROR(PrintAddress(absl::StrCat(reinterpret_cast<uint64_t>(table.data()))));
  for (;;) pause();
}

}  // namespace covey::cli
