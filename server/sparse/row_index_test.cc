// SPDX-License-Identifier: Apache-2.0
#include "server/sparse/row_index.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

using Model = std::map<uint64_t, uint32_t>;

std::vector<std::pair<uint64_t, uint32_t>> Content(const RowIndex& index) {
  std::vector<std::pair<uint64_t, uint32_t>> content;
  index.ForEach([&](const IndexEntry& entry) { content.emplace_back(entry.place, entry.row); });
  return content;
}

void ExpectEqual(const RowIndex& index, const Model& model) {
  ASSERT_EQ(index.size(), model.size());
  ASSERT_EQ(Content(index),
            (std::vector<std::pair<uint64_t, uint32_t>>(model.begin(), model.end())));
  for (const auto& [place, row] : model) {
    const IndexEntry* const found = index.Find(place);
    ASSERT_NE(found, nullptr) << place;
    ASSERT_EQ(found->row, row);
    for (const uint64_t other : {place - 1, place + 1}) {
      ASSERT_EQ(index.Find(other) != nullptr, model.contains(other));
    }
  }
}

// Inserts, and removes every fourth.
void Change(RowIndex& index, Model& model, int operations, Random& random,
            uint64_t (*draw)(Random&)) {
  for (int i = 0; i < operations; ++i) {
    const uint64_t place = draw(random);
    if (random.Below(4) == 0) {
      // Half of the time one that is there.
      const auto near = model.lower_bound(place);
      const uint64_t victim = near != model.end() && i % 2 == 0 ? near->first : place;
      ASSERT_EQ(index.Erase(victim), model.erase(victim) == 1);
    } else {
      const uint32_t row = i + 1;
      const auto [it, is_new] = model.emplace(place, row);
      IndexEntry& entry = index.FindOrInsert(place, row);
      ASSERT_EQ(entry.row, it->second);
      ASSERT_EQ(entry.place, place);
      ASSERT_EQ(entry.stamp, is_new ? 0 : 7);
      entry.stamp = 7;
    }
  }
}

TEST(RowIndexTest, IsAMapOfRandomPlaces) {
  RowIndex index;
  Model model;
  Random random(1);
  for (int round = 0; round < 5; ++round) {
    Change(index, model, 60'000, random, [](Random& r) { return r.Next(); });
    ExpectEqual(index, model);
  }
  EXPECT_GT(index.pages(), 16);
}

// The first and the last place, and those that end pages.
TEST(RowIndexTest, IsAMapOfPlacesAtTheEdges) {
  RowIndex index;
  Model model;
  Random random(2);
  for (int round = 0; round < 3; ++round) {
    Change(index, model, 30'000, random, [](Random& r) {
      const uint64_t edge = r.Below(16) << 60;
      return edge - 2000 + r.Below(4000);
    });
    index.FindOrInsert(0, 1).stamp = 7;
    model.emplace(0, 1);
    index.FindOrInsert(~uint64_t{0}, 2).stamp = 7;
    model.emplace(~uint64_t{0}, 2);
    ExpectEqual(index, model);
  }
}

TEST(RowIndexTest, IsAMapOfPlacesThatAreAimedAtOnePage) {
  RowIndex index;
  Model model;
  Random random(3);
  for (int round = 0; round < 3; ++round) {
    Change(index, model, 60'000, random, [](Random& r) {
      return r.Below(3) == 0 ? r.Next() : (uint64_t{0xabcdef0123} << 24) + r.Below(1 << 24);
    });
    ExpectEqual(index, model);
  }
}

TEST(RowIndexTest, VisitsFromAPlaceOnUntilToldToStop) {
  RowIndex index;
  Model model;
  Random random(7);
  Change(index, model, 50'000, random, [](Random& r) {
    return r.Below(3) == 0 ? r.Next() : (uint64_t{0xabcdef0123} << 24) + r.Below(1 << 24);
  });
  for (int round = 0; round < 300; ++round) {
    auto expected = model.lower_bound(round == 0 ? 0 : random.Next());
    // Places between two entries, and entries themselves.
    const uint64_t from = expected == model.end() ? ~uint64_t{0} : expected->first - round % 2;
    expected = model.lower_bound(from);
    int left = 200;
    index.VisitFrom(from, [&](const IndexEntry& entry) {
      EXPECT_NE(expected, model.end());
      EXPECT_EQ(entry.place, expected->first);
      ++expected;
      return --left > 0;
    });
    ASSERT_TRUE(left == 0 || expected == model.end());
  }
}

TEST(RowIndexTest, GrowsWithoutABurst) {
  RowIndex index;
  Random random(4);
  size_t pages = index.pages();
  size_t most_at_once = 0;
  size_t before = 0;
  for (uint32_t i = 1; i <= 3'000'000; ++i) {
    index.FindOrInsert(random.Next(), i);
    if (i % 100'000 == 0 && i > 1'000'000) {
      most_at_once = std::max(most_at_once, index.pages() - before);
    }
    if (i % 100'000 == 0) before = index.pages();
  }
  pages = index.pages();
  // A page holds 2,000 to 3,500 of random places. If all split at one fill, 500 would in a while.
  EXPECT_GT(pages, 3'000'000 / 3'500);
  EXPECT_LT(pages, 3'000'000 / 1'600);
  EXPECT_LT(most_at_once, 200);
  EXPECT_LE(index.directory_size(), 16 * index.pages());
}

TEST(RowIndexTest, AimedPlacesTakeNoMoreMemoryThanTheirEntries) {
  RowIndex index;
  Random random(5);
  for (uint32_t i = 1; i <= 1'000'000; ++i) {
    index.FindOrInsert((uint64_t{0xabcdef0123} << 24) + random.Below(1 << 24), i);
  }
  EXPECT_GT(index.size(), 900'000);
  EXPECT_LE(index.directory_size(), 16 * (index.pages() + 1));
  EXPECT_LT(index.bytes(), index.size() * 48);
}

TEST(RowIndexTest, RemovedEntriesLeaveNothingBehind) {
  RowIndex index;
  Random random(6);
  std::vector<uint64_t> places(100'000);
  for (uint64_t& place : places) place = random.Next();
  for (int round = 0; round < 5; ++round) {
    for (const uint64_t place : places) index.FindOrInsert(place, 1);
    EXPECT_EQ(index.size(), places.size());
    for (const uint64_t place : places) ASSERT_TRUE(index.Erase(place));
    EXPECT_EQ(index.size(), 0);
    EXPECT_TRUE(Content(index).empty());
  }
  EXPECT_LT(index.pages(), 64);
}

}  // namespace
}  // namespace covey::server
