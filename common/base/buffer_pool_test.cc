// SPDX-License-Identifier: Apache-2.0
#include "common/base/buffer_pool.h"

#include <array>
#include <cstdint>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/buffer.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

constexpr size_t kSize = 1 << 20;  // eight to a slab

std::vector<Buffer> Take(BufferPool& spares, size_t count) {
  std::vector<Buffer> taken;
  for (size_t i = 0; i < count; ++i) taken.push_back(spares.Take(kSize));
  return taken;
}

TEST(BufferPoolTest, GivesOutABufferAgainOnceItsLastReaderIsDone) {
  BufferPool spares(0);
  Buffer buffer = spares.Take(kSize);
  EXPECT_EQ(buffer.size(), kSize);
  Buffer reader = buffer;
  const uint8_t* const memory = buffer.data();
  buffer = Buffer();
  const Buffer other = spares.Take(kSize);
  EXPECT_NE(other.data(), memory);
  std::thread([&reader] { reader = Buffer(); }).join();
  EXPECT_NE(spares.Take(kSize - 64).data(), memory);
  EXPECT_EQ(spares.Take(kSize).data(), memory);
}

TEST(BufferPoolTest, BuffersDoNotOverlapAndAreWritable) {
  BufferPool spares(0);
  for (const size_t size : {size_t{1}, size_t{262'144}, size_t{300'001}, size_t{1'500'000},
                            size_t{3'000'000}, size_t{9'000'001}}) {
    std::vector<Buffer> taken;
    std::set<const uint8_t*> starts;
    for (uint8_t i = 0; i < 20; ++i) {
      taken.push_back(spares.Take(size));
      taken.back().MutableData()[0] = i;
      taken.back().MutableData()[size - 1] = i;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(taken.back().data()) % 64, 0u);
      EXPECT_TRUE(starts.insert(taken.back().data()).second);
    }
    for (uint8_t i = 0; i < 20; ++i) {
      EXPECT_EQ(taken[i].bytes()[0], i) << size;
      EXPECT_EQ(taken[i].bytes()[size - 1], i) << size;
    }
  }
}

TEST(BufferPoolTest, CopiesLentMemoryIntoASpare) {
  BufferPool spares(1000);
  const std::array<uint8_t, 2> memory = {1, 2};
  const Buffer own = Buffer::Wrap(memory.data(), memory.size(), {});
  EXPECT_EQ(spares.Kept(own).data(), own.data());
  const Buffer lent = Buffer::Lend(memory.data(), memory.size(), {});
  const Buffer kept = spares.Kept(lent);
  EXPECT_NE(kept.data(), lent.data());
  EXPECT_EQ(kept.bytes()[1], 2);
}

TEST(BufferPoolTest, SlabsWithoutBuffersInUseStayUpToTheLimit) {
  BufferPool spares(20 << 20);
  std::vector<Buffer> taken = Take(spares, 4 * 8);
  EXPECT_EQ(spares.free_bytes(), 0);
  taken.clear();
  EXPECT_EQ(spares.free_bytes(), 2 * 8 * kSize);
}

TEST(BufferPoolTest, ATenthOfWhatIsInUseStays) {
  BufferPool spares(0);
  const std::vector<Buffer> in_use = Take(spares, 40 * 8);
  std::vector<Buffer> taken = Take(spares, 10 * 8);
  taken.clear();
  EXPECT_EQ(spares.free_bytes(), 4 * 8 * kSize);
}

TEST(BufferPoolTest, NoMoreStaysWhenLessIsInUse) {
  BufferPool spares(0);
  std::vector<Buffer> in_use = Take(spares, 40 * 8);
  std::vector<Buffer> taken = Take(spares, 10 * 8);
  taken.clear();
  Buffer other = spares.Take(2 * kSize);
  in_use.clear();
  EXPECT_EQ(spares.free_bytes(), (8 + 3 * 2) * kSize) << "a slab, and what is beside `other`";
}

TEST(BufferPoolTest, OneSlabStaysInAnyCase) {
  BufferPool spares(0);
  std::vector<Buffer> taken = Take(spares, 2 * 8);
  taken.clear();
  EXPECT_EQ(spares.free_bytes(), 8 * kSize);
}

TEST(BufferPoolTest, ASlabStaysWhileOneOfItsBuffersIsInUse) {
  BufferPool spares(0);
  std::vector<Buffer> taken = Take(spares, 2 * 8);
  taken.erase(taken.begin() + 1, taken.end());
  EXPECT_EQ(spares.free_bytes(), (7 + 8) * kSize);
  // New ones come from the slab that is in use.
  taken.push_back(spares.Take(kSize));
  const int64_t apart = taken[1].data() - taken[0].data();
  EXPECT_LT(apart < 0 ? -apart : apart, 8 << 20);
}

TEST(BufferPoolTest, BuffersMayOutliveThePool) {
  Buffer buffer;
  {
    BufferPool spares(0);
    buffer = spares.Take(kSize);
  }
  buffer.MutableData()[kSize - 1] = 1;
  std::thread([&buffer] { buffer = Buffer(); }).join();
}

}  // namespace
}  // namespace covey
