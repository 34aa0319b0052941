// SPDX-License-Identifier: Apache-2.0
#include "server/table/chunk_reserve.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

constexpr size_t kChunkBytes = 4 << 20;

// Whether each page has been touched.
bool IsResident(const Buffer& chunk) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages(chunk.size() / page);
  void* const start = const_cast<uint8_t*>(chunk.data());
  EXPECT_EQ(mincore(start, chunk.size(), pages.data()), 0);
  return std::all_of(pages.begin(), pages.end(), [](unsigned char bits) { return bits & 1; });
}

void AwaitReady(const ChunkReserve& reserve, size_t count) {
  const absl::Time until = MonotonicNow() + absl::Seconds(30);
  while (reserve.ready() != count && MonotonicNow() < until) sched_yield();
  EXPECT_EQ(reserve.ready(), count);
}

TEST(ChunkReserveTest, ChunksAreTouchedBeforeTheyAreTaken) {
  ChunkReserve reserve(kChunkBytes, 3);
  EXPECT_EQ(reserve.ready(), 0u) << "a server without rows keeps none";
  const Buffer first = reserve.Take();
  EXPECT_EQ(first.size(), kChunkBytes);
  AwaitReady(reserve, 3);
  for (int i = 0; i < 10; ++i) {
    Buffer chunk = reserve.Take();
    EXPECT_EQ(chunk.size(), kChunkBytes);
    EXPECT_TRUE(IsResident(chunk)) << i;
    std::fill_n(chunk.MutableData(), chunk.size(), uint8_t{1});
    AwaitReady(reserve, 3);
  }
}

TEST(ChunkReserveTest, ATakerNeverWaits) {
  ChunkReserve reserve(kChunkBytes, 1);
  std::vector<Buffer> chunks;
  for (int i = 0; i < 20; ++i) {
    chunks.push_back(reserve.Take());
    EXPECT_EQ(chunks.back().size(), kChunkBytes);
  }
  for (size_t i = 0; i < chunks.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(chunks[i].data(), chunks[j].data());
  }
}

TEST(ChunkReserveTest, ChunksOutliveTheReserve) {
  Buffer chunk;
  {
    ChunkReserve reserve(kChunkBytes, 2);
    chunk = reserve.Take();
  }
  std::fill_n(chunk.MutableData(), chunk.size(), uint8_t{1});
}

}  // namespace
}  // namespace covey::server
