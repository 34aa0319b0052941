// SPDX-License-Identifier: Apache-2.0
#include "common/net/shm/shm_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "gtest/gtest.h"

namespace covey {
namespace {

Descriptor Copy(const Descriptor& descriptor) {
  return Descriptor(fcntl(descriptor.number(), F_DUPFD_CLOEXEC, 0));
}

ShmRegion MustCreate() {
  absl::StatusOr<ShmRegion> region = ShmRegion::Create();
  EXPECT_TRUE(region.ok()) << region.status();
  return *std::move(region);
}

TEST(ShmRegionTest, ThePeerSeesWhatTheOwnerWrites) {
  ShmRegion region = MustCreate();
  auto peer = PeerShmRegion::Map(Copy(region.descriptor()));
  ASSERT_TRUE(peer.ok()) << peer.status();
  region.CloseDescriptor();
  region.state().written = 7;
  region.ring().back() = 8;
  region.frames().back() = 9;
  EXPECT_EQ(peer->state().written, 7u);
  EXPECT_EQ(peer->ring().back(), 8);
  EXPECT_EQ(peer->frames().back(), 9);
}

TEST(ShmRegionTest, ThePeerCannotWriteItNorCutItOff) {
  const ShmRegion region = MustCreate();
  const int descriptor = region.descriptor().number();
  EXPECT_EQ(mmap(nullptr, kShmRegionBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0),
            MAP_FAILED);
  EXPECT_NE(ftruncate(descriptor, 0), 0);
  EXPECT_NE(ftruncate(descriptor, 2 * kShmRegionBytes), 0);
  EXPECT_NE(fcntl(descriptor, F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST(ShmRegionTest, WhatCouldBeCutOffIsRefused) {
  Descriptor unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.number(), kShmRegionBytes), 0);
  EXPECT_EQ(PeerShmRegion::Map(std::move(unsealed)).status().code(),
            absl::StatusCode::kInvalidArgument);
  Descriptor small(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(small.number(), kShmRegionBytes / 2), 0);
  ASSERT_EQ(fcntl(small.number(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_EQ(PeerShmRegion::Map(std::move(small)).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(PeerShmRegion::Map(Descriptor(open("/dev/zero", O_RDONLY | O_CLOEXEC))).ok());
  EXPECT_FALSE(PeerShmRegion::Map(Descriptor()).ok());
}

TEST(ShmRegionTest, AChildOfForkDoesNotInheritIt) {
  const ShmRegion region = MustCreate();
  const pid_t child = fork();
  if (child == 0) {
    unsigned char resident = 0;
    // ENOMEM: nothing is mapped there.
    _exit(mincore(&region.state(), kShmPageBytes, &resident) == 0 ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace covey
