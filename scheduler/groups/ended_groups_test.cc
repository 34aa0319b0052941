// SPDX-License-Identifier: Apache-2.0
#include "scheduler/groups/ended_groups.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class EndedGroupsTest : public ::testing::Test {
 protected:
  void Add(uint64_t first_step, proto::Group::State state, size_t groups = 1) {
    for (size_t i = 0; i < groups; ++i) {
      proto::Group& group = *view_.add_groups();
      group.set_id(static_cast<uint32_t>(view_.groups_size()));
      group.set_first_step(first_step);
      group.set_state(state);
    }
  }

  proto::ClusterView view_;
};

TEST_F(EndedGroupsTest, TheNewestAreKept) {
  Add(0, proto::Group::ACTIVE);
  Add(7, proto::Group::DONE, kEndedGroupsKept);
  Add(8, proto::Group::ACTIVE);
  EXPECT_THAT(ForgettableGroups(view_), IsEmpty());
  Add(9, proto::Group::BROKEN, 2);
  EXPECT_THAT(ForgettableGroups(view_), ElementsAre(GroupId(2), GroupId(3)));
}

TEST_F(EndedGroupsTest, ThoseThatTheJobBeganWithAreKept) {
  Add(5, proto::Group::BROKEN, 2);
  Add(6, proto::Group::BROKEN, kEndedGroupsKept + 1);
  EXPECT_THAT(ForgettableGroups(view_), ElementsAre(GroupId(3)));
}

TEST_F(EndedGroupsTest, ThoseOfThePresentSnapshotAreKept) {
  Add(0, proto::Group::ACTIVE);
  Add(6, proto::Group::BROKEN, kEndedGroupsKept + 2);
  view_.mutable_snapshot()->add_groups()->set_group(2);
  EXPECT_THAT(ForgettableGroups(view_), ElementsAre(GroupId(3)));
}

}  // namespace
}  // namespace covey::scheduler
