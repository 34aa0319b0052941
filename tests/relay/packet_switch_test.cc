// SPDX-License-Identifier: Apache-2.0
#include "tests/relay/packet_switch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace covey::relay {
namespace {

constexpr uint32_t kAddresses[] = {0x0a000001, 0x0a000002, 0x0a000003};
const absl::Time kStart = absl::UnixEpoch();

std::string PacketTo(size_t to, absl::string_view payload) {
  std::string packet(20, '\0');
  packet[0] = 0x45;
  for (size_t i = 0; i < 4; ++i) packet[16 + i] = static_cast<char>(kAddresses[to] >> (24 - 8 * i));
  return absl::StrCat(packet, payload);
}

class PacketSwitchTest : public testing::Test {
 protected:
  void Send(size_t from, size_t to, absl::string_view payload = "hello") {
    switch_.Receive(now_, from, PacketTo(to, payload));
  }
  // "2:hello": the packets that have arrived, with their receivers.
  std::vector<std::string> Arrivals() {
    std::vector<std::string> texts;
    for (const auto& delivery : switch_.Due(now_)) {
      texts.push_back(absl::StrCat(delivery.to, ":", delivery.packet.substr(20)));
    }
    return texts;
  }
  void SetFaults(const std::vector<Fault>& faults) {
    for (const Fault& fault : faults) ASSERT_TRUE(Validate(fault).ok()) << Validate(fault);
    switch_.SetFaults(now_, faults);
  }

  absl::Time now_ = kStart;
  PacketSwitch switch_{{{"a", kAddresses[0]}, {"b", kAddresses[1]}, {"c", kAddresses[2]}}, 42};
};

using Texts = std::vector<std::string>;

TEST_F(PacketSwitchTest, PassesPacketsToTheirAddressAtOnce) {
  Send(0, 1, "one");
  Send(0, 2, "two");
  Send(1, 0, "three");
  EXPECT_EQ(kStart, switch_.NextAt());
  EXPECT_EQ(Texts({"1:one", "2:two", "0:three"}), Arrivals());
  EXPECT_EQ(absl::InfiniteFuture(), switch_.NextAt());
}

TEST_F(PacketSwitchTest, DropsWhatIsForNobody) {
  switch_.Receive(now_, 0, "");
  switch_.Receive(now_, 0, std::string(20, '\x45'));
  std::string version_six = PacketTo(1, "hello");
  version_six[0] = 0x60;
  switch_.Receive(now_, 0, version_six);
  EXPECT_EQ(Texts(), Arrivals());
  EXPECT_EQ(3u, switch_.counts().unknown);
}

TEST_F(PacketSwitchTest, APartitionStopsBothWays) {
  SetFaults({{.kind = FaultKind::kPartition, .target = "a", .other = "b"}});
  Send(0, 1);
  Send(1, 0);
  Send(0, 2);
  Send(2, 1);
  EXPECT_EQ(Texts({"2:hello", "1:hello"}), Arrivals());
  EXPECT_EQ(2u, switch_.counts().blocked);
  SetFaults({});
  Send(0, 1);
  EXPECT_EQ(Texts({"1:hello"}), Arrivals());
}

TEST_F(PacketSwitchTest, AOneWayPartitionStopsOneWay) {
  SetFaults({{.kind = FaultKind::kOneWayPartition, .target = "a", .other = "b"}});
  Send(0, 1);
  Send(1, 0);
  EXPECT_EQ(Texts({"0:hello"}), Arrivals());
}

TEST_F(PacketSwitchTest, IsolationStopsEverythingOfOneNode) {
  SetFaults({{.kind = FaultKind::kIsolate, .target = "a"}});
  Send(0, 1);
  Send(2, 0);
  Send(1, 2);
  EXPECT_EQ(Texts({"2:hello"}), Arrivals());
}

TEST_F(PacketSwitchTest, WhatIsUnderWayIsLostWhenAPartitionBegins) {
  SetFaults({{.kind = FaultKind::kDelay, .target = "a", .by = absl::Seconds(1)}});
  Send(0, 1);
  SetFaults({{.kind = FaultKind::kPartition, .target = "a", .other = "b"}});
  now_ += absl::Seconds(1);
  EXPECT_EQ(Texts(), Arrivals());
}

TEST_F(PacketSwitchTest, ACloggedLinkHoldsPacketsBack) {
  SetFaults({{.kind = FaultKind::kClog, .target = "a", .other = "b"}});
  Send(0, 1, "one");
  Send(0, 1, "two");
  Send(1, 0, "back");
  now_ += absl::Hours(1);
  EXPECT_EQ(Texts({"0:back"}), Arrivals());
  SetFaults({});
  EXPECT_EQ(Texts({"1:one", "1:two"}), Arrivals());
}

TEST_F(PacketSwitchTest, ACloggedLinkIsBounded) {
  SetFaults({{.kind = FaultKind::kClog, .target = "a", .other = "b"}});
  const std::string payload(1 << 20, 'x');
  for (int i = 0; i < 40; ++i) Send(0, 1, payload);
  SetFaults({});
  EXPECT_EQ(31u, Arrivals().size());
  EXPECT_EQ(9u, switch_.counts().overflowed);
}

TEST_F(PacketSwitchTest, DelayAndJitterAddUpAndKeepTheOrder) {
  SetFaults({{.kind = FaultKind::kDelay, .target = "a", .by = absl::Milliseconds(10)},
             {.kind = FaultKind::kDelay, .target = "*", .other = "b", .by = absl::Milliseconds(5)},
             {.kind = FaultKind::kJitter, .target = "a", .by = absl::Milliseconds(20)}});
  absl::Duration slowest;
  for (int i = 0; i < 200; ++i) {
    Send(0, 1, absl::StrCat(i));
    const absl::Time sent = now_;
    now_ = switch_.NextAt();
    EXPECT_EQ(Texts({absl::StrCat("1:", i)}), Arrivals());
    EXPECT_GE(now_ - sent, absl::Milliseconds(15));
    EXPECT_LE(now_ - sent, absl::Milliseconds(35));
    slowest = std::max(slowest, now_ - sent);
  }
  EXPECT_GT(slowest, absl::Milliseconds(33));

  for (int i = 0; i < 100; ++i) Send(0, 1, absl::StrCat(i));
  now_ += absl::Seconds(1);
  const Texts arrivals = Arrivals();
  ASSERT_EQ(100u, arrivals.size());
  for (size_t i = 0; i < arrivals.size(); ++i) EXPECT_EQ(absl::StrCat("1:", i), arrivals[i]);
}

TEST_F(PacketSwitchTest, LossAndDuplicationHappenAsOftenAsAskedFor) {
  SetFaults({{.kind = FaultKind::kLoss, .target = "a", .other = "b", .chance = 0.1},
             {.kind = FaultKind::kLoss, .target = "*", .chance = 0.1},
             {.kind = FaultKind::kDuplicate, .target = "a", .other = "c", .chance = 0.2}});
  constexpr int kPackets = 20000;
  for (int i = 0; i < kPackets; ++i) Send(0, 1);
  // Five standard deviations of 20,000 packets are below 0.015.
  EXPECT_NEAR(0.81, static_cast<double>(Arrivals().size()) / kPackets, 0.015);
  for (int i = 0; i < kPackets; ++i) Send(0, 2);
  EXPECT_NEAR(0.9 * 1.2, static_cast<double>(Arrivals().size()) / kPackets, 0.025);
}

TEST_F(PacketSwitchTest, CorruptionFlipsOneBitBehindTheHeader) {
  SetFaults({{.kind = FaultKind::kCorrupt, .target = "a", .chance = 1}});
  const std::string sent = PacketTo(1, std::string(100, '\0'));
  for (int i = 0; i < 100; ++i) {
    switch_.Receive(now_, 0, sent);
    const auto arrived = switch_.Due(now_);
    ASSERT_EQ(1u, arrived.size());
    EXPECT_EQ(sent.substr(0, 20), arrived[0].packet.substr(0, 20));
    int flipped = 0;
    for (const char c : arrived[0].packet.substr(20)) {
      flipped += __builtin_popcount(static_cast<uint8_t>(c));
    }
    EXPECT_EQ(1, flipped);
  }
  // An empty payload has no bit to flip.
  switch_.Receive(now_, 0, PacketTo(1, ""));
  EXPECT_EQ(1u, switch_.Due(now_).size());
}

TEST_F(PacketSwitchTest, ARateSpacesPacketsAndDropsWhatItsQueueCannotHold) {
  // 1,000 bytes take 10 ms.
  SetFaults({{.kind = FaultKind::kRate, .target = "a", .bits_per_second = 800'000}});
  const std::string payload(980, 'x');
  for (int i = 0; i < 100; ++i) Send(0, 1, payload);
  now_ += absl::Milliseconds(105);
  EXPECT_EQ(10u, Arrivals().size());
  now_ += absl::Seconds(10);
  EXPECT_EQ(11u, Arrivals().size());
  EXPECT_EQ(79u, switch_.counts().overflowed);
}

TEST_F(PacketSwitchTest, TheSameSeedLosesTheSamePackets) {
  const auto run = [](uint64_t seed) {
    PacketSwitch fresh({{"a", kAddresses[0]}, {"b", kAddresses[1]}}, seed);
    fresh.SetFaults(kStart,
                    std::vector<Fault>{{.kind = FaultKind::kLoss, .target = "*", .chance = 0.5}});
    for (int i = 0; i < 100; ++i) fresh.Receive(kStart, 0, PacketTo(1, absl::StrCat(i)));
    std::string text;
    for (const auto& delivery : fresh.Due(kStart)) absl::StrAppend(&text, delivery.packet);
    return text;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

}  // namespace
}  // namespace covey::relay
