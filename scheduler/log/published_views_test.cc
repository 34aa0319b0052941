// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/published_views.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/cluster/view_change.h"
#include "proto/scheduler.pb.h"

namespace covey::scheduler {
namespace {

proto::WatchViewReply Parsed(const Buffer& bytes) {
  proto::WatchViewReply reply;
  EXPECT_TRUE(reply.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  return reply;
}

proto::ClusterView ViewOf(uint64_t epoch, uint64_t nodes) {
  proto::ClusterView view;
  view.set_epoch(epoch);
  for (uint64_t id = 1; id <= nodes; ++id) {
    proto::Node& node = *view.add_nodes();
    node.set_id(id);
    node.set_host(absl::StrCat("host-", id));
  }
  return view;
}

// A node of 100 has changed.
proto::ClusterView After(proto::ClusterView view) {
  view.set_epoch(view.epoch() + 1);
  view.mutable_nodes(static_cast<int>(view.epoch() % 100))
      ->set_departure(absl::StrCat("at ", view.epoch()));
  return view;
}

TEST(PublishedViewsTest, EachWatcherIsLedFromItsViewToTheNewest) {
  std::vector<proto::ClusterView> all = {ViewOf(1, 100)};
  PublishedViews views(all[0]);
  for (int i = 0; i < 20; ++i) {
    all.push_back(After(all.back()));
    views.Publish(all.back());
    for (const proto::ClusterView& known : all) {
      if (&known == &all.back()) continue;
      const proto::WatchViewReply reply = Parsed(views.Since(Epoch(known.epoch())));
      ASSERT_TRUE(reply.has_change() && !reply.has_view());
      const auto applied = ApplyViewChange(known, reply.change());
      ASSERT_TRUE(applied.ok()) << applied.status();
      ASSERT_EQ(applied->SerializeAsString(), all.back().SerializeAsString());
    }
  }
  EXPECT_EQ(Parsed(views.Whole()).view().SerializeAsString(), all.back().SerializeAsString());
  EXPECT_EQ(views.newest().SerializeAsString(), all.back().SerializeAsString());
}

TEST(PublishedViewsTest, WatchersThatKnowTheSameShareTheBytes) {
  PublishedViews views(ViewOf(1, 100));
  views.Publish(After(ViewOf(1, 100)));
  EXPECT_EQ(views.Since(Epoch(1)).data(), views.Since(Epoch(1)).data());
  EXPECT_EQ(views.Whole().data(), views.Whole().data());
  const Buffer before = views.Whole();
  views.Publish(After(views.newest()));
  EXPECT_EQ(Parsed(views.Whole()).view().epoch(), 3u);
  EXPECT_EQ(Parsed(before).view().epoch(), 2u);
}

TEST(PublishedViewsTest, AViewThatIsNotRememberedIsAnsweredWithTheWholeOne) {
  PublishedViews views(ViewOf(5, 100));
  EXPECT_TRUE(Parsed(views.Since(Epoch(4))).has_view());
  views.Publish(After(views.newest()));
  EXPECT_TRUE(Parsed(views.Since(Epoch(5))).has_change());
  EXPECT_TRUE(Parsed(views.Since(Epoch(4))).has_view()) << "it was never published here";
  for (size_t i = 1; i < PublishedViews::kChangesKept; ++i) views.Publish(After(views.newest()));
  EXPECT_TRUE(Parsed(views.Since(Epoch(5))).has_change());
  views.Publish(After(views.newest()));
  EXPECT_TRUE(Parsed(views.Since(Epoch(5))).has_view());
  EXPECT_TRUE(Parsed(views.Since(Epoch(6))).has_change());
}

TEST(PublishedViewsTest, RemembersABoundedNumberOfBytes) {
  proto::ClusterView view = ViewOf(1, 100);
  PublishedViews views(view);
  for (int i = 0; i < 6; ++i) {
    view = After(view);
    view.mutable_nodes(0)->set_host(std::string(1 << 20, static_cast<char>('a' + i)));
    // So that the whole view is larger than a change.
    view.mutable_nodes(1)->set_host(std::string(8 << 20, 'z'));
    views.Publish(view);
  }
  EXPECT_TRUE(Parsed(views.Since(Epoch(6))).has_change());
  EXPECT_TRUE(Parsed(views.Since(Epoch(2))).has_view());
}

TEST(PublishedViewsTest, AChangeThatIsNotSmallerIsNotSent) {
  PublishedViews views(ViewOf(1, 3));
  proto::ClusterView other = ViewOf(2, 100);
  for (proto::Node& node : *other.mutable_nodes()) node.set_departure("left");
  views.Publish(other);
  EXPECT_TRUE(Parsed(views.Since(Epoch(1))).has_view());
}

TEST(PublishedViewsTest, AReplyIsUnpackedAsItsReceiverGetsIt) {
  PublishedViews views(ViewOf(3, 2));
  Message reply;
  reply.envelope.mutable_watch_view_reply()->mutable_view()->set_epoch(3);
  UnpackWatchReply(reply);
  EXPECT_EQ(reply.envelope.watch_view_reply().view().nodes_size(), 0);
  reply.frames.push_back(views.Whole());
  UnpackWatchReply(reply);
  EXPECT_EQ(reply.envelope.watch_view_reply().view().nodes_size(), 2);
  EXPECT_TRUE(reply.frames.empty());
}

}  // namespace
}  // namespace covey::scheduler
