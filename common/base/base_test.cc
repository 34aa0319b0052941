// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "common/base/bounded_queue.h"
#include "common/base/buffer.h"
#include "common/base/crc32c.h"
#include "common/base/edit_distance.h"
#include "common/base/random.h"
#include "common/base/strong_id.h"

namespace covey {
namespace {

std::span<const uint8_t> BytesOf(const char* text) {
  return {reinterpret_cast<const uint8_t*>(text), std::strlen(text)};
}

TEST(BufferTest, SharesMemoryAndKnowsWhenItIsAlone) {
  Buffer buffer = Buffer::Allocate(16);
  EXPECT_TRUE(buffer.IsUnique());
  std::memset(buffer.MutableData(), 7, 16);
  {
    const Buffer slice = buffer.Slice(4, 8);
    EXPECT_FALSE(buffer.IsUnique());
    EXPECT_EQ(slice.data(), buffer.data() + 4);
    EXPECT_EQ(slice.size(), 8u);
  }
  EXPECT_TRUE(buffer.IsUnique());
}

TEST(BufferTest, AlignsForCacheLinesAndHugePages) {
  EXPECT_EQ(reinterpret_cast<uintptr_t>(Buffer::Allocate(1).data()) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(Buffer::Allocate(4 << 20).data()) % (2 << 20), 0u);
}

// Buffers of a few sizes come and go between small objects, as messages do.
TEST(BufferTest, MemoryOfBuffersThatAreGoneIsUsedAgain) {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  constexpr std::array<size_t, 5> kSizes = {4096, 20000, 66000, 150000, 262144};
  Random random(1);
  std::vector<std::vector<uint8_t>> objects(2000);
  std::vector<Buffer> buffers(40);
  const size_t before = mallinfo2().arena;
  size_t live = 0;
  size_t live_max = 0;
  for (int i = 0; i < 200'000; ++i) {
    objects[random.Below(objects.size())] = std::vector<uint8_t>(16 + random.Below(200));
    Buffer& buffer = buffers[random.Below(buffers.size())];
    live -= buffer.size();
    buffer = Buffer::Allocate(kSizes[random.Below(kSizes.size())]);
    live += buffer.size();
    live_max = std::max(live_max, live);
  }
  EXPECT_LT(mallinfo2().arena - before, 2 * live_max);
}

TEST(BufferTest, ReleasesWrappedMemoryOnceWithTheLastHandle) {
  int released = 0;
  const std::array<uint8_t, 4> memory{};
  Buffer buffer = Buffer::Wrap(memory.data(), memory.size(), [&released] { ++released; });
  Buffer copy = buffer;
  buffer = Buffer();
  EXPECT_EQ(released, 0);
  copy = Buffer();
  EXPECT_EQ(released, 1);
}

TEST(BufferTest, KeptCopiesOnlyLentMemory) {
  int released = 0;
  const std::array<uint8_t, 4> memory = {1, 2, 3, 4};
  Buffer lent = Buffer::Lend(memory.data(), memory.size(), [&released] { ++released; });
  Buffer slice = lent.Slice(1, 2);
  EXPECT_TRUE(slice.is_lent());
  const Buffer kept = slice.Kept();
  lent = Buffer();
  EXPECT_EQ(released, 0);
  slice = Buffer();
  EXPECT_EQ(released, 1);
  EXPECT_FALSE(kept.is_lent());
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_TRUE(std::equal(kept.bytes().begin(), kept.bytes().end(), memory.begin() + 1));

  const Buffer wrapped = Buffer::Wrap(memory.data(), memory.size(), {});
  for (const Buffer& own : {kept, wrapped, Buffer()}) {
    EXPECT_FALSE(own.is_lent());
    EXPECT_EQ(own.Kept().data(), own.data());
    EXPECT_EQ(own.Kept().size(), own.size());
  }
}

TEST(BufferTest, BorrowedMemoryIsWrittenAndGivenBackOnce) {
  int released = 0;
  std::array<uint8_t, 4> memory = {1, 2, 3, 4};
  Buffer buffer = Buffer::Borrow(memory.data(), memory.size(), [&released] { ++released; });
  EXPECT_FALSE(buffer.is_lent());
  Buffer slice = buffer.Slice(1, 2);
  buffer = Buffer();
  slice.MutableData()[0] = 7;
  EXPECT_EQ(memory[1], 7);
  EXPECT_EQ(released, 0);
  slice = Buffer();
  EXPECT_EQ(released, 1);
}

TEST(BufferDeathTest, RefusesToWriteSharedOrWrappedMemory) {
  Buffer buffer = Buffer::Allocate(8);
  const Buffer copy = buffer;
  EXPECT_DEATH(buffer.MutableData(), "check_failed");
  const uint8_t byte = 0;
  EXPECT_DEATH(Buffer::Wrap(&byte, 1, {}).MutableData(), "check_failed");
  EXPECT_DEATH(copy.Slice(4, 5), "check_failed");
}

TEST(BufferTest, HandlesMayBeDroppedOnAnotherThread) {
  Buffer buffer = Buffer::Allocate(64);
  std::thread other([copy = buffer]() mutable { copy = Buffer(); });
  while (!buffer.IsUnique()) std::this_thread::yield();
  buffer.MutableData()[0] = 1;
  other.join();
}

TEST(Crc32cTest, MatchesPublishedVectors) {
  EXPECT_EQ(Crc32c({}), 0u);
  EXPECT_EQ(Crc32c(BytesOf("123456789")), 0xe3069283u);  // the check value of every catalogue
  const std::array<uint8_t, 32> zeros{};                 // RFC 3720, B.4
  EXPECT_EQ(Crc32c(zeros), 0x8a9136aau);
}

TEST(Crc32cTest, ACopyHasTheChecksumOfItsSource) {
  Random random(5);
  for (const size_t size : {0u, 1u, 14u, 100u, 16u << 10, (16u << 10) + 1, 100'000u}) {
    std::vector<uint8_t> from(size);
    for (uint8_t& byte : from) byte = static_cast<uint8_t>(random.Next());
    for (const CopyWay way : {CopyWay::kThroughCaches, CopyWay::kPastCaches}) {
      for (const size_t start : {0u, 1u, 15u, 16u, 17u}) {
        std::vector<uint8_t> to(start + size + 1, 42);
        const auto first = to.begin() + static_cast<std::ptrdiff_t>(start);
        EXPECT_EQ(CopyWithCrc32c(from, to.data() + start, way), Crc32c(from)) << size;
        EXPECT_TRUE(std::equal(from.begin(), from.end(), first)) << size << " from " << start;
        EXPECT_EQ(std::count(to.begin(), first, 42), start) << size << " from " << start;
        EXPECT_EQ(to.back(), 42) << size << " from " << start;
      }
    }
  }
}

TEST(Crc32cTest, OfTwoPartsIsJoinedWithoutTheirBytes) {
  Random random(5);
  std::vector<uint8_t> bytes(100'000);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Next());
  const std::span<const uint8_t> all = bytes;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4}, size_t{1023}, bytes.size()}) {
    const uint32_t whole = Crc32c(all.first(size));
    for (const size_t cut : {size_t{0}, size_t{1}, size / 3, size}) {
      if (cut > size) continue;
      const uint32_t first = Crc32c(all.first(cut));
      const uint32_t second = Crc32c(all.subspan(cut, size - cut));
      EXPECT_EQ(JoinCrc32c(first, second, size - cut), whole) << cut << " of " << size;
      EXPECT_EQ(ExtendCrc32c(first, all.subspan(cut, size - cut)), whole) << cut << " of " << size;
    }
  }
}

TEST(Crc32cTest, EqualsTheDefinitionAtEveryLengthAndAlignment) {
  // Bit by bit, as the definition of the polynomial division.
  const auto by_definition = [](std::span<const uint8_t> bytes) {
    uint32_t crc = ~0u;
    for (const uint8_t byte : bytes) {
      crc ^= byte;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78 : 0);
    }
    return ~crc;
  };
  Random random(11);
  std::vector<uint8_t> bytes(40'000);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Next());
  // Past the size from which the library uses other instructions.
  for (size_t size = 0; size < 1200; ++size) {
    const std::span<const uint8_t> some = std::span(bytes).subspan(random.Below(64), size);
    ASSERT_EQ(Crc32c(some), by_definition(some)) << size;
  }
  for (int i = 0; i < 50; ++i) {
    const size_t first = random.Below(64);
    const std::span<const uint8_t> some =
        std::span(bytes).subspan(first, random.Below(bytes.size() - first));
    ASSERT_EQ(Crc32c(some), by_definition(some)) << some.size();
  }
}

TEST(RandomTest, IsReproducibleAndSplitsIntoDifferentStreams) {
  Random a(42), b(42);
  EXPECT_EQ(a.Next(), b.Next());
  EXPECT_NE(Random(42).Split(1).Next(), Random(42).Split(2).Next());
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t value = a.Below(10);
    ASSERT_LT(value, 10u);
    seen.insert(value);
    const double uniform = a.Uniform();
    ASSERT_TRUE(uniform >= 0 && uniform < 1);
  }
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_FALSE(a.Chance(0));
  EXPECT_TRUE(a.Chance(1));
}

TEST(BoundedQueueTest, KeepsOrderAndRefusesWhenFull) {
  BoundedQueue<int> queue(2);
  EXPECT_TRUE(queue.empty());
  EXPECT_TRUE(queue.Push(1));
  EXPECT_FALSE(queue.empty());
  EXPECT_TRUE(queue.Push(2));
  EXPECT_FALSE(queue.Push(3));
  EXPECT_EQ(queue.TakeAll(), (std::vector<int>{1, 2}));
  EXPECT_TRUE(queue.TakeAll().empty());
}

TEST(StrongIdTest, ComparesAndDefaultsToNone) {
  using Id = StrongId<struct TestTag>;
  EXPECT_EQ(Id().value(), 0u);
  EXPECT_LT(Id(1), Id(2));
  EXPECT_EQ(Id(1).Next(), Id(2));
}

TEST(EditDistanceTest, CountsInsertionsDeletionsAndReplacements) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("status", "status"), 0u);
  EXPECT_EQ(EditDistance("", "run"), 3u);
  EXPECT_EQ(EditDistance("stats", "status"), 1u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
}

}  // namespace
}  // namespace covey
