// SPDX-License-Identifier: Apache-2.0
#include "client/engine/sending/version_floor.h"

#include <gtest/gtest.h>

namespace covey::client {
namespace {

constexpr ShardId kShard{TableId(3), ShardIndex(1)};

TEST(VersionFloorTest, RisesWithWhatWasSeenAndNeverFalls) {
  VersionFloor floor;
  EXPECT_EQ(floor.Of(kShard, 1), Version(0));
  floor.Observe(kShard, 1, Version(7));
  floor.Observe(kShard, 1, Version(5));
  EXPECT_EQ(floor.Of(kShard, 1), Version(7));
  EXPECT_EQ(floor.Of({TableId(3), ShardIndex(0)}, 1), Version(0));
}

TEST(VersionFloorTest, AGenerationSaysNothingAboutAnother) {
  VersionFloor floor;
  floor.ObserveValues(kShard, 1, Version(7));
  EXPECT_EQ(floor.Of(kShard, 2), Version(0));
  floor.Observe(kShard, 2, Version(1));
  EXPECT_EQ(floor.Of(kShard, 2), Version(1));
  EXPECT_EQ(floor.BaseOf(kShard).generation, 2u);
  EXPECT_EQ(floor.BaseOf(kShard).version, Version(0)) << "no values of this generation were read";
}

TEST(VersionFloorTest, AGradientIsBasedOnTheValuesThatWereReadLast) {
  VersionFloor floor;
  floor.ObserveValues(kShard, 1, Version(7));
  floor.Observe(kShard, 1, Version(9));
  EXPECT_EQ(floor.BaseOf(kShard).version, Version(7));
  EXPECT_EQ(floor.Of(kShard, 1), Version(9));
}

}  // namespace
}  // namespace covey::client
