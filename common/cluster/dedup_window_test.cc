// SPDX-License-Identifier: Apache-2.0
#include "common/cluster/dedup_window.h"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "common/base/check.h"
#include "common/base/random.h"
#include "common/cluster/limits.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using Verdict = DedupWindow::Verdict;

TEST(DedupWindow, RemembersTheVersionOfADuplicate) {
  DedupWindow window;
  EXPECT_EQ(window.Find(1).verdict, Verdict::kNew);
  window.Record(1, Version(7));
  EXPECT_EQ(window.Find(1).verdict, Verdict::kDuplicate);
  EXPECT_EQ(window.Find(1).version, Version(7));
  EXPECT_EQ(window.Find(2).verdict, Verdict::kNew);
}

TEST(DedupWindow, TakesSequencesInAnyOrder) {
  DedupWindow window;
  for (uint64_t sequence : {5, 3, 9, 4}) window.Record(sequence, Version(sequence * 10));
  for (uint64_t sequence : {3, 4, 5, 9}) {
    EXPECT_EQ(window.Find(sequence).verdict, Verdict::kDuplicate) << sequence;
    EXPECT_EQ(window.Find(sequence).version, Version(sequence * 10)) << sequence;
  }
  for (uint64_t sequence : {1, 2, 6, 7, 8, 10}) {
    EXPECT_EQ(window.Find(sequence).verdict, Verdict::kNew) << sequence;
  }
}

TEST(DedupWindow, LearnsTheVersionOfWhatWasHeld) {
  DedupWindow window;
  window.Record(1, Version(0));
  EXPECT_EQ(window.Find(1).verdict, Verdict::kDuplicate);
  EXPECT_EQ(window.Find(1).version, Version(0));
  window.SetVersion(1, Version(3));
  EXPECT_EQ(window.Find(1).version, Version(3));
}

TEST(DedupWindow, TellsTooOldFromNew) {
  DedupWindow window;
  window.Record(1, Version(0));
  window.Record(1 + kDedupWindow, Version(2));
  EXPECT_EQ(window.Find(1).verdict, Verdict::kTooOld);
  EXPECT_EQ(window.Find(2).verdict, Verdict::kNew);
  window.SetVersion(1, Version(9));  // It has left the window: no effect.
  EXPECT_EQ(window.Find(1).verdict, Verdict::kTooOld);
  EXPECT_EQ(window.Find(1 + kDedupWindow).version, Version(2));
}

TEST(DedupWindow, SurvivesTheLastSequences) {
  constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max();
  DedupWindow window;
  window.Record(1, Version(1));
  window.Record(kLast, Version(2));
  window.Record(kLast - 100, Version(3));
  EXPECT_EQ(window.Find(1).verdict, Verdict::kTooOld);
  EXPECT_EQ(window.Find(kLast).version, Version(2));
  EXPECT_EQ(window.Find(kLast - 100).version, Version(3));
  EXPECT_EQ(window.Find(kLast - 1).verdict, Verdict::kNew);
  std::vector<uint64_t> visited;
  window.ForEach([&](uint64_t sequence, Version) {
    COVEY_CHECK(visited.size() < 2);  // Ends a walk that would never end.
    visited.push_back(sequence);
  });
  EXPECT_EQ(visited, (std::vector<uint64_t>{kLast - 100, kLast}));
}

TEST(DedupWindow, CostsLittleForAProducerThatPushesSeldomAndIsBoundedForOthers) {
  DedupWindow window;
  EXPECT_EQ(window.memory_bytes(), 0u);
  window.Record(1000000, Version(1));
  EXPECT_LE(window.memory_bytes(), 64u);
  for (uint64_t sequence = 1; sequence <= 3 * kDedupWindow; ++sequence) {
    window.Record(1000000 + sequence, Version(sequence));
  }
  EXPECT_LE(window.memory_bytes(), kDedupWindow * sizeof(uint64_t));
}

// Compared with a map of all recorded sequences.
TEST(DedupWindow, AgreesWithANaiveMemory) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    DedupWindow window;
    std::map<uint64_t, uint64_t> naive;
    const uint64_t base = random.Below(3) * kDedupWindow;
    const uint64_t spread = 1 + random.Below(seed % 2 == 0 ? 40 : 2 * kDedupWindow);
    uint64_t centre = base + 1;
    for (int step = 0; step < 3000; ++step) {
      centre += random.Below(4);
      if (random.Chance(0.001)) centre += random.Below(3 * kDedupWindow);
      const uint64_t behind = random.Below(spread);
      const uint64_t sequence = centre > behind ? centre - behind : centre;
      const uint64_t highest = naive.empty() ? 0 : naive.rbegin()->first;
      const DedupWindow::Finding finding = window.Find(sequence);
      if (sequence + kDedupWindow <= highest) {
        ASSERT_EQ(finding.verdict, Verdict::kTooOld) << "seed " << seed << " step " << step;
      } else if (const auto known = naive.find(sequence); known != naive.end()) {
        ASSERT_EQ(finding.verdict, Verdict::kDuplicate) << "seed " << seed << " step " << step;
        ASSERT_EQ(finding.version, Version(known->second)) << "seed " << seed << " step " << step;
        if (known->second == 0) {
          known->second = random.Next() >> 1;
          window.SetVersion(sequence, Version(known->second));
        }
      } else {
        ASSERT_EQ(finding.verdict, Verdict::kNew) << "seed " << seed << " step " << step;
        const uint64_t version = random.Below(2) * (random.Next() >> 1);
        window.Record(sequence, Version(version));
        naive[sequence] = version;
      }
      ASSERT_EQ(window.highest(), naive.rbegin()->first);
    }
    // Recorded in its own order, the sequences make a window that answers alike.
    DedupWindow copy;
    window.ForEach([&](uint64_t sequence, Version version) { copy.Record(sequence, version); });
    for (uint64_t sequence = 0; sequence <= window.highest() + 2; ++sequence) {
      ASSERT_EQ(copy.Find(sequence).verdict, window.Find(sequence).verdict) << sequence;
      ASSERT_EQ(copy.Find(sequence).version, window.Find(sequence).version) << sequence;
    }
  }
}

}  // namespace
}  // namespace covey
