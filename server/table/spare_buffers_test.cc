// SPDX-License-Identifier: Apache-2.0
#include "server/table/spare_buffers.h"

#include <array>
#include <cstdint>
#include <utility>

#include "common/base/buffer.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

TEST(SpareBuffersTest, GivesBackARetiredBufferOfTheSameSize) {
  SpareBuffers spares(1000);
  Buffer buffer = spares.Take(100);
  const uint8_t* const memory = buffer.data();
  spares.Retire(std::move(buffer));
  EXPECT_EQ(spares.retained_bytes(), 100);
  EXPECT_NE(spares.Take(99).data(), memory);
  EXPECT_EQ(spares.Take(100).data(), memory);
  EXPECT_EQ(spares.retained_bytes(), 0);
}

TEST(SpareBuffersTest, CopiesLentMemoryIntoASpare) {
  SpareBuffers spares(1000);
  const std::array<uint8_t, 2> memory = {1, 2};
  const Buffer own = Buffer::Wrap(memory.data(), memory.size(), {});
  EXPECT_EQ(spares.Kept(own).data(), own.data());
  const Buffer lent = Buffer::Lend(memory.data(), memory.size(), {});
  Buffer kept = spares.Kept(lent);
  const uint8_t* const copy = kept.data();
  EXPECT_NE(copy, lent.data());
  EXPECT_EQ(kept.bytes()[1], 2);
  EXPECT_NE(spares.Take(2).data(), copy);
  kept = Buffer();
  EXPECT_EQ(spares.Take(2).data(), copy);
}

TEST(SpareBuffersTest, NeverGivesABufferThatAReaderHolds) {
  SpareBuffers spares(1000);
  Buffer reader = spares.Take(100);
  spares.Retire(reader);
  const Buffer other = spares.Take(100);
  EXPECT_NE(other.data(), reader.data());
  const uint8_t* const memory = reader.data();
  reader = Buffer();
  EXPECT_EQ(spares.Take(100).data(), memory);
}

TEST(SpareBuffersTest, DropsTheOldestBeyondItsLimitButKeepsTheNewest) {
  SpareBuffers spares(250);
  Buffer first = Buffer::Allocate(100);
  spares.Retire(first);
  spares.Retire(Buffer::Allocate(100));
  EXPECT_EQ(spares.retained_bytes(), 200);
  EXPECT_FALSE(first.IsUnique());
  spares.Retire(Buffer::Allocate(100));
  EXPECT_EQ(spares.retained_bytes(), 200);
  EXPECT_TRUE(first.IsUnique());
  spares.Retire(Buffer::Allocate(1000));
  EXPECT_EQ(spares.retained_bytes(), 1000);
}

}  // namespace
}  // namespace covey::server
