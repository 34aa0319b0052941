// SPDX-License-Identifier: Apache-2.0
#include "common/cluster/view_change.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/cluster/limits.h"

namespace covey {
namespace {

using google::protobuf::FieldDescriptor;

std::string RandomText(Random& random) { return absl::StrCat("text ", random.Below(3)); }

// Sets every field of the message, and of the messages in it, or leaves it out, at random.
void Fill(Random& random, google::protobuf::Message& message) {
  const google::protobuf::Reflection& fields = *message.GetReflection();
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    fields.ClearField(&message, field);
    // `id` orders the lists.
    if (field->name() == "id" || random.Chance(0.3)) continue;
    if (field->is_repeated()) {
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
      for (uint64_t n = random.Below(3); n > 0; --n) {
        Fill(random, *fields.AddMessage(&message, field));
      }
      continue;
    }
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_UINT32:
        fields.SetUInt32(&message, field, static_cast<uint32_t>(random.Below(3)));
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        fields.SetUInt64(&message, field, random.Below(3));
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        fields.SetBool(&message, field, random.Chance(0.5));
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        fields.SetString(&message, field, RandomText(random));
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        Fill(random, *fields.MutableMessage(&message, field));
        break;
      default:
        break;
    }
  }
}

template <typename Items>
void FillList(Random& random, Items& items) {
  items.Clear();
  for (uint32_t id = 1; id < 12; ++id) {
    if (random.Chance(0.4)) continue;
    auto& item = *items.Add();
    Fill(random, item);
    item.set_id(id);
  }
}

proto::ClusterView RandomView(Random& random, uint64_t epoch) {
  proto::ClusterView view;
  Fill(random, view);
  view.set_epoch(epoch);
  FillList(random, *view.mutable_nodes());
  FillList(random, *view.mutable_groups());
  FillList(random, *view.mutable_tables());
  return view;
}

// A few things of the view come, go and change.
proto::ClusterView Successor(Random& random, const proto::ClusterView& view) {
  const proto::ClusterView other = RandomView(random, view.epoch() + 1 + random.Below(3));
  proto::ClusterView next = random.Chance(0.5) ? other : view;
  next.set_epoch(other.epoch());
  const auto mix = [&](const auto& before, const auto& drawn, auto& items) {
    items.Clear();
    for (uint32_t id = 1; id < 12; ++id) {
      const bool is_drawn = random.Chance(0.3);
      for (const auto& item : is_drawn ? drawn : before) {
        if (item.id() == id) *items.Add() = item;
      }
    }
  };
  mix(view.nodes(), other.nodes(), *next.mutable_nodes());
  mix(view.groups(), other.groups(), *next.mutable_groups());
  mix(view.tables(), other.tables(), *next.mutable_tables());
  return next;
}

TEST(ViewChangeTest, LeadsToTheLaterViewByteForByte) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const proto::ClusterView before = RandomView(random, random.Below(5));
    const proto::ClusterView after = Successor(random, before);
    const auto applied = ApplyViewChange(before, MakeViewChange(before, after));
    ASSERT_TRUE(applied.ok()) << applied.status();
    ASSERT_EQ(applied->SerializeAsString(), after.SerializeAsString()) << i;
  }
}

TEST(ViewChangeTest, MergedChangesLeadWhereTheyLeadOneByOne) {
  Random random(2);
  for (int i = 0; i < 1000; ++i) {
    std::vector<proto::ClusterView> views = {RandomView(random, 1)};
    proto::ViewChange merged;
    size_t bytes = 0;
    for (int step = 0; step < 4; ++step) {
      views.push_back(Successor(random, views.back()));
      const proto::ViewChange change = MakeViewChange(views[step], views[step + 1]);
      bytes += change.ByteSizeLong();
      if (step == 0) {
        merged = change;
        continue;
      }
      const auto both = MergeViewChanges(merged, change);
      ASSERT_TRUE(both.ok()) << both.status();
      merged = *both;
    }
    ASSERT_LE(merged.ByteSizeLong(), bytes);
    const auto applied = ApplyViewChange(views.front(), merged);
    ASSERT_TRUE(applied.ok()) << applied.status();
    ASSERT_EQ(applied->SerializeAsString(), views.back().SerializeAsString()) << i;
  }
}

// The names are in the lists, so what is not there has to be told.
TEST(ViewChangeTest, CarriesOnlyWhatHasChanged) {
  proto::ClusterView before;
  before.set_epoch(7);
  for (uint64_t id = 2; id < 1002; ++id) {
    proto::Node& node = *before.add_nodes();
    node.set_id(id);
    node.set_name(absl::StrCat("worker-", id));
    node.set_state(proto::Node::ALIVE);
  }
  proto::ClusterView after = before;
  after.set_epoch(8);
  after.mutable_nodes(500)->set_state(proto::Node::DEAD);
  after.mutable_nodes()->erase(after.nodes().begin());
  const proto::ViewChange change = MakeViewChange(before, after);
  EXPECT_EQ(change.since(), 7u);
  ASSERT_EQ(change.changed().nodes_size(), 1);
  EXPECT_EQ(change.changed().nodes(0).id(), 502u);
  ASSERT_EQ(change.gone_nodes_size(), 1);
  EXPECT_EQ(change.gone_nodes(0), 2u);
  EXPECT_LT(change.ByteSizeLong(), 40u);
}

proto::ViewChange Change(uint64_t since, uint64_t to, const std::vector<uint64_t>& changed,
                         const std::vector<uint64_t>& gone) {
  proto::ViewChange change;
  change.set_since(since);
  change.mutable_changed()->set_epoch(to);
  for (const uint64_t id : changed) change.mutable_changed()->add_nodes()->set_id(id);
  for (const uint64_t id : gone) change.add_gone_nodes(id);
  return change;
}

TEST(ViewChangeTest, RefusesWhatDoesNotFit) {
  proto::ClusterView view;
  view.set_epoch(5);
  for (const uint64_t id : {4, 9}) view.add_nodes()->set_id(id);
  const auto apply = [&](const proto::ViewChange& change) {
    return ApplyViewChange(view, change).status().code();
  };
  const auto kRefused = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(apply(Change(5, 6, {5, 9}, {4})), absl::StatusCode::kOk);
  EXPECT_EQ(apply(Change(5, 6, {}, {3, 4})), absl::StatusCode::kOk) << "3 came and went";
  EXPECT_EQ(apply(Change(4, 6, {}, {})), kRefused);
  EXPECT_EQ(apply(Change(6, 7, {}, {})), kRefused);
  EXPECT_EQ(apply(Change(5, 5, {}, {})), kRefused);
  EXPECT_EQ(apply(Change(5, 6, {7, 6}, {})), kRefused);
  EXPECT_EQ(apply(Change(5, 6, {7, 7}, {})), kRefused);
  EXPECT_EQ(apply(Change(5, 6, {}, {9, 4})), kRefused);
  EXPECT_EQ(apply(Change(5, 6, {}, {4, 4})), kRefused);
  EXPECT_EQ(apply(Change(5, 6, {4}, {4})), kRefused);
  proto::ViewChange many = Change(5, 6, {}, {});
  for (uint64_t id = 10; id < 10 + kNodesMax - 1; ++id) {
    many.mutable_changed()->add_nodes()->set_id(id);
  }
  EXPECT_EQ(apply(many), kRefused);
}

TEST(ViewChangeTest, ChangesMergeOnlyWhenOneFollowsTheOther) {
  const auto merge = [](const proto::ViewChange& earlier, const proto::ViewChange& later) {
    return MergeViewChanges(earlier, later).status().code();
  };
  EXPECT_EQ(merge(Change(1, 2, {3}, {}), Change(2, 3, {}, {3})), absl::StatusCode::kOk);
  EXPECT_EQ(merge(Change(1, 2, {3}, {}), Change(3, 4, {}, {3})),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(merge(Change(1, 2, {3, 3}, {}), Change(2, 3, {}, {})),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(merge(Change(1, 2, {3}, {}), Change(2, 3, {}, {3, 3})),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace covey
