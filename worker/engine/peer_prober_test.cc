// SPDX-License-Identifier: Apache-2.0
#include "worker/engine/peer_prober.h"

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/cluster/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/ring_fixture.h"

namespace covey::worker {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kFirst = Ring::kFirstNode;

// The worker kFirst of five workers; its peers answer as the test says.
class PeerProberTest : public testing::Test {
 protected:
  PeerProberTest() { SetView(Ring::ActiveView(5)); }

  void SetView(proto::ClusterView view) {
    view.set_epoch(++epoch_);
    view.clear_groups();
    view_ = *ClusterView::Make(std::move(view));
    prober_.SetView(*view_, outbox_);
  }

  void Order(uint64_t number, const std::vector<uint64_t>& peers) {
    proto::ProbeOrder order;
    order.set_order(number);
    for (const uint64_t peer : peers) order.add_peers(peer);
    prober_.SetOrder(now_, order, *view_, outbox_);
  }

  // A probe of another worker, or its reply, as it comes over the network.
  static Message From(uint64_t node, uint64_t number, bool is_reply) {
    Message message;
    message.connection = 1;
    message.envelope.mutable_header()->set_node(node);
    message.envelope.mutable_header()->set_incarnation(100 + node - kFirst);
    message.envelope.mutable_peer_probe()->set_number(number);
    message.envelope.mutable_peer_probe()->set_reply(is_reply);
    return message;
  }
  // How many replies it makes.
  size_t Hear(const Message& message) {
    EXPECT_TRUE(prober_.Receive(now_, message, *view_, outbox_));
    return TakeMessages().size();
  }
  std::vector<Message> TakeMessages() {
    for (const auto& [peer, endpoint] : outbox_.TakeRoutes()) routes_[peer.node] = endpoint;
    return outbox_.TakeMessages();
  }

  // Each probe comes back after what `seconds` says; infinity = never. Until there is a report.
  using Seconds = std::function<double(uint64_t node, size_t bytes)>;
  proto::ProbeReport Measure(const Seconds& seconds) {
    for (;;) {
      if (auto report = prober_.TakeReport()) return *report;
      const std::vector<Message> probes = TakeMessages();
      absl::Duration took = absl::InfiniteDuration();
      if (!probes.empty()) {
        EXPECT_THAT(probes, SizeIs(1)) << "one after the other";
        const Message& probe = probes[0];
        const size_t bytes = probe.frames.empty() ? 0 : probe.frames[0].size();
        bytes_ += bytes;
        took = absl::Seconds(seconds(probe.to().node.value(), bytes));
        EXPECT_EQ(routes_[probe.to().node], view_->EndpointOf(probe.to()));
        if (now_ + took < prober_.NextWake()) {
          now_ += took;
          prober_.Receive(now_,
                          From(probe.to().node.value(), probe.envelope.peer_probe().number(), true),
                          *view_, outbox_);
          continue;
        }
      }
      now_ = prober_.NextWake();
      EXPECT_NE(now_, absl::InfiniteFuture());
      if (now_ == absl::InfiniteFuture()) return {};
      prober_.Wake(now_, *view_, outbox_);
    }
  }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  uint64_t epoch_ = 0;
  std::shared_ptr<const ClusterView> view_;
  Outbox outbox_;
  std::map<NodeId, std::string> routes_;
  size_t bytes_ = 0;
  PeerProber prober_;
};

TEST_F(PeerProberTest, MeasuresEachPeerAndDoesNotCountFirstContact) {
  Order(7, {kFirst + 1, kFirst + 3});
  std::map<uint64_t, int> trips;
  const proto::ProbeReport report = Measure([&](uint64_t node, size_t bytes) {
    const double distance = node == kFirst + 1 ? 0.0001 : 0.001;
    // First contact is the slowest, and the third round trip the shortest.
    const int trip = ++trips[node];
    const double noise = trip == 1 ? 0.1 : trip == 4 || bytes > 0 ? 0 : 0.01;
    return distance + noise + static_cast<double>(bytes) / 1e9;
  });
  EXPECT_EQ(report.order(), 7u);
  ASSERT_EQ(report.links_size(), 2);
  EXPECT_EQ(report.links(0).node(), kFirst + 1);
  EXPECT_NEAR(report.links(0).round_trip_seconds(), 0.0001, 1e-8);
  EXPECT_NEAR(report.links(0).bytes_per_second(), 1e9, 1e6);
  EXPECT_EQ(report.links(1).node(), kFirst + 3);
  EXPECT_NEAR(report.links(1).round_trip_seconds(), 0.001, 1e-8);
  EXPECT_EQ(bytes_, 2 * (PeerProber::kSmallProbeBytes + PeerProber::kLargeProbeBytes));
  EXPECT_FALSE(prober_.TakeReport().has_value()) << "once";
  EXPECT_EQ(prober_.NextWake(), absl::InfiniteFuture());
}

TEST_F(PeerProberTest, ASlowLinkIsNotFilled) {
  Order(1, {kFirst + 1});
  const proto::ProbeReport report =
      Measure([](uint64_t, size_t bytes) { return 0.0001 + static_cast<double>(bytes) / 3e6; });
  EXPECT_EQ(bytes_, PeerProber::kSmallProbeBytes);
  EXPECT_NEAR(report.links(0).bytes_per_second(), 3e6, 1e4);
}

TEST_F(PeerProberTest, APeerThatDoesNotAnswerIsGivenUp) {
  Order(1, {kFirst + 1, kFirst + 2});
  const absl::Time begun = now_;
  const proto::ProbeReport report = Measure([](uint64_t node, size_t) {
    return node == kFirst + 1 ? std::numeric_limits<double>::infinity() : 0.0001;
  });
  ASSERT_EQ(report.links_size(), 2);
  EXPECT_EQ(report.links(0).round_trip_seconds(), 0);
  EXPECT_EQ(report.links(0).bytes_per_second(), 0);
  EXPECT_GT(report.links(1).round_trip_seconds(), 0);
  EXPECT_LT(now_ - begun, PeerProber::kContactMax + PeerProber::kContactEvery);
}

TEST_F(PeerProberTest, FirstContactAloneIsNoMeasurement) {
  Order(1, {kFirst + 1});
  int trips = 0;
  const proto::ProbeReport report = Measure([&](uint64_t, size_t) {
    return ++trips == 1 ? 0.001 : std::numeric_limits<double>::infinity();
  });
  EXPECT_EQ(report.links(0).round_trip_seconds(), 0);
}

TEST_F(PeerProberTest, AnOrderEndsHoweverManyDoNotAnswer) {
  const std::vector<uint64_t> silent(kProbedPeersMax, kFirst + 1);
  Order(1, silent);
  const absl::Time begun = now_;
  const proto::ProbeReport report =
      Measure([](uint64_t, size_t) { return std::numeric_limits<double>::infinity(); });
  EXPECT_EQ(report.links_size(), static_cast<int>(kProbedPeersMax));
  EXPECT_EQ(now_ - begun, PeerProber::kOrderMax);
}

TEST_F(PeerProberTest, AtMostSoManyPeersAreMeasured) {
  Order(1, std::vector<uint64_t>(kProbedPeersMax + 1, kFirst + 1));
  EXPECT_EQ(Measure([](uint64_t, size_t) { return 0.001; }).links_size(),
            static_cast<int>(kProbedPeersMax));
}

TEST_F(PeerProberTest, APeerThatTheViewDoesNotListYetIsTriedAgain) {
  SetView(Ring::ActiveView(2));
  Order(1, {kFirst + 3});
  EXPECT_THAT(TakeMessages(), IsEmpty());
  SetView(Ring::ActiveView(5));
  EXPECT_GT(Measure([](uint64_t, size_t) { return 0.001; }).links(0).round_trip_seconds(), 0);
}

TEST_F(PeerProberTest, AnotherOrderReplacesTheOneThatIsUnderWay) {
  Order(1, {kFirst + 1});
  Order(1, {kFirst + 1});
  EXPECT_THAT(TakeMessages(), SizeIs(1)) << "the same order again";
  Order(2, {kFirst + 2});
  const proto::ProbeReport report = Measure([](uint64_t node, size_t) {
    EXPECT_EQ(node, kFirst + 2);
    return 0.001;
  });
  EXPECT_EQ(report.order(), 2u);
}

TEST_F(PeerProberTest, WhatTheSchedulerNoLongerAsksForEnds) {
  Order(1, {kFirst + 1});
  Order(0, {});
  EXPECT_EQ(prober_.NextWake(), absl::InfiniteFuture());
  EXPECT_FALSE(prober_.TakeReport().has_value());
  // After a restart of the scheduler its first order has this number again.
  TakeMessages();
  Order(1, {kFirst + 1});
  EXPECT_THAT(TakeMessages(), SizeIs(1));
}

TEST_F(PeerProberTest, AnEmptyOrderIsReportedAtOnce) {
  Order(3, {});
  const auto report = prober_.TakeReport();
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->order(), 3u);
}

TEST_F(PeerProberTest, ProbesOfWorkersAreReturnedWithoutTheirFrames) {
  Message probe = From(kFirst + 1, 42, false);
  probe.frames.push_back(ProbeFrame(1000));
  prober_.Receive(now_, probe, *view_, outbox_);
  const std::vector<Message> replies = outbox_.TakeMessages();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].to().node, NodeId(kFirst + 1));
  EXPECT_EQ(replies[0].connection, probe.connection);
  EXPECT_EQ(replies[0].envelope.peer_probe().number(), 42u);
  EXPECT_TRUE(replies[0].envelope.peer_probe().reply());
  EXPECT_THAT(replies[0].frames, IsEmpty());
}

TEST_F(PeerProberTest, ProbesOfStrangersAreDropped) {
  Message stranger = From(kFirst + 50, 1, false);
  EXPECT_EQ(Hear(stranger), 0u);
  Message impostor = From(kFirst + 1, 1, false);
  impostor.envelope.mutable_header()->set_incarnation(9);
  EXPECT_EQ(Hear(impostor), 0u);
  proto::ClusterView view = Ring::ActiveView(5);
  view.mutable_nodes(1)->set_state(proto::Node::DEAD);
  view.mutable_nodes(2)->set_role(proto::CLIENT);
  SetView(std::move(view));
  EXPECT_EQ(Hear(From(kFirst + 1, 1, false)), 0u) << "dead";
  EXPECT_EQ(Hear(From(kFirst + 2, 1, false)), 0u) << "a client";
  EXPECT_EQ(Hear(From(kFirst + 3, 1, false)), 1u);
}

TEST_F(PeerProberTest, RepliesOfStrangersAndOtherPeersCountForNothing) {
  Order(1, {kFirst + 1});
  const std::vector<Message> probes = TakeMessages();
  ASSERT_THAT(probes, SizeIs(1));
  const uint64_t number = probes[0].envelope.peer_probe().number();
  Message impostor = From(kFirst + 1, number, true);
  impostor.envelope.mutable_header()->set_incarnation(9);
  EXPECT_EQ(Hear(impostor), 0u);
  EXPECT_EQ(Hear(From(kFirst + 2, number, true)), 0u);
  EXPECT_EQ(Hear(From(kFirst + 1, number + 1, true)), 0u);
  EXPECT_EQ(Hear(From(kFirst + 1, number, true)), 1u) << "the next probe";
}

TEST_F(PeerProberTest, AFloodIsAnsweredForAWhileOnly) {
  size_t answers = 0;
  for (size_t i = 0; i < 3 * kProbesAnsweredPerSecondMax; ++i) {
    answers += Hear(From(kFirst + 1 + i % 2, i + 1, false));
  }
  EXPECT_EQ(answers, kProbesAnsweredPerSecondMax);
  now_ += absl::Seconds(1);
  EXPECT_EQ(Hear(From(kFirst + 1, 1, false)), 1u);
}

TEST_F(PeerProberTest, WaysToPeersThatAreGoneAreClosed) {
  Order(1, {kFirst + 1, kFirst + 2});
  Measure([](uint64_t, size_t) { return 0.001; });
  proto::ClusterView view = Ring::ActiveView(5);
  view.mutable_nodes(1)->set_state(proto::Node::DEAD);
  SetView(std::move(view));
  TakeMessages();
  EXPECT_EQ(routes_[NodeId(kFirst + 1)], "");
  EXPECT_NE(routes_[NodeId(kFirst + 2)], "");
}

}  // namespace
}  // namespace covey::worker
