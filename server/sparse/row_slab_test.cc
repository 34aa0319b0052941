// SPDX-License-Identifier: Apache-2.0
#include "server/sparse/row_slab.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "server/table/row_memory.h"

namespace covey::server {
namespace {

TEST(RowSlabTest, RowsKeepWhatTheyHoldWhileItGrows) {
  for (const size_t width : {1, 3, 4, 5, 16, 17, 4096}) {
    const size_t rows = width == 4096 ? 700 : 200'000;
    RowSlab<uint32_t> slab(ProcessRowMemory(), width);
    for (size_t row = 0; row < rows; ++row) {
      slab.Grow(row + 1);
      for (size_t i = 0; i < width; ++i) {
        slab.Row(row)[i] = static_cast<uint32_t>(row * 31 + i);
      }
    }
    for (size_t row = 0; row < rows; ++row) {
      for (size_t i = 0; i < width; ++i) {
        ASSERT_EQ(slab.Row(row)[i], static_cast<uint32_t>(row * 31 + i)) << width << " " << row;
      }
    }
  }
}

TEST(RowSlabTest, RowsAreAlignedForVectors) {
  RowSlab<float> slab(ProcessRowMemory(), 17);
  slab.Grow(5);
  for (size_t row = 0; row < 5; ++row) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(slab.Row(row)) % 16, 0);
  }
}

TEST(RowSlabTest, AFewRowsTakeLittleMemory) {
  RowSlab<float> slab(ProcessRowMemory(), 16);
  EXPECT_EQ(slab.bytes(), 0);
  slab.Grow(10);
  EXPECT_EQ(slab.bytes(), 16 * 16 * 4);
  slab.Grow(1'000'000);
  EXPECT_LT(slab.bytes(), 1'000'000 * 16 * 4 + (2 << 20));
}

}  // namespace
}  // namespace covey::server
