// SPDX-License-Identifier: Apache-2.0
#include "common/net/shm/shm_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace covey {
namespace {

// The size is final. Whoever is given the descriptor cannot map it writable.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

absl::Status Failed(absl::string_view call) {
  return absl::UnavailableError(
      absl::StrCat("no shared memory: ", call, ": ", std::strerror(errno)));
}

}  // namespace

ShmRegion::ShmRegion(uint8_t* start, Descriptor descriptor)
    : start_(start), descriptor_(std::move(descriptor)) {}

ShmRegion::ShmRegion(ShmRegion&& other) noexcept
    : start_(std::exchange(other.start_, nullptr)), descriptor_(std::move(other.descriptor_)) {}

ShmRegion::~ShmRegion() {
  if (start_ != nullptr) munmap(start_, kShmRegionBytes);
}

absl::StatusOr<ShmRegion> ShmRegion::Create() {
  Descriptor descriptor(memfd_create("covey", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!descriptor.open()) return Failed("memfd_create");
  if (ftruncate(descriptor.number(), kShmRegionBytes) != 0) return Failed("ftruncate");
  void* start = mmap(nullptr, kShmRegionBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                     descriptor.number(), 0);
  if (start == MAP_FAILED) return Failed("mmap");
  ShmRegion region(static_cast<uint8_t*>(start), std::move(descriptor));
  if (madvise(start, kShmRegionBytes, MADV_DONTFORK) != 0) return Failed("madvise");
  if (fcntl(region.descriptor_.number(), F_ADD_SEALS, kSeals) != 0) return Failed("F_ADD_SEALS");
  return region;
}

PeerShmRegion::PeerShmRegion(PeerShmRegion&& other) noexcept
    : start_(std::exchange(other.start_, nullptr)) {}

PeerShmRegion::~PeerShmRegion() {
  if (start_ != nullptr) munmap(const_cast<uint8_t*>(start_), kShmRegionBytes);
}

absl::StatusOr<PeerShmRegion> PeerShmRegion::Map(Descriptor descriptor) {
  struct stat status = {};
  if (fstat(descriptor.number(), &status) != 0 ||
      status.st_size != static_cast<off_t>(kShmRegionBytes)) {
    return absl::InvalidArgumentError("the peer's shared memory has another size");
  }
  const int seals = fcntl(descriptor.number(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return absl::InvalidArgumentError("the peer could cut off its shared memory");
  }
  void* start = mmap(nullptr, kShmRegionBytes, PROT_READ, MAP_SHARED, descriptor.number(), 0);
  if (start == MAP_FAILED) return Failed("mmap of the peer's memory");
  PeerShmRegion region(static_cast<const uint8_t*>(start));
  if (madvise(start, kShmRegionBytes, MADV_DONTFORK) != 0) return Failed("madvise");
  return region;
}

}  // namespace covey
