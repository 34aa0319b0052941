// SPDX-License-Identifier: Apache-2.0

// No live node is declared dead: a day of heartbeats of many nodes over a bad network, through the
// very classes that send and judge them.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/random.h"
#include "common/cluster/failure_detector.h"
#include "common/net/message.h"
#include "common/runtime/member.h"

namespace covey {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();
constexpr absl::Duration kBeat = absl::Milliseconds(500);

struct Network {
  double loss = 0;
  absl::Duration jitter;
  // The longest delay with which a busy machine schedules a process.
  absl::Duration late;
};

// One node: its member, its path to the scheduler and back, and the scheduler's failure detector.
class Node {
 public:
  Node(const Network& network, uint64_t seed)
      : network_(network),
        random_(seed),
        member_({.job_name = "job", .role = proto::CLIENT, .seed = seed}, next_request_id_),
        detector_({.beat = kBeat}, kStart) {
    member_.Wake(now_, outbox_);
    for (const Message& request : outbox_.TakeMessages()) {
      Message reply = MakeReply(request);
      reply.envelope.mutable_register_reply()->set_node(2 + seed);
      reply.envelope.mutable_register_reply()->set_heartbeat_ms(absl::ToInt64Milliseconds(kBeat));
      member_.Receive(now_, reply, outbox_);
    }
    outbox_.TakeMessages();
  }

  // Runs it until `end`. Returns the number of silences in this time that counted as its death.
  int Live(absl::Time end) {
    int deaths = 0;
    while (now_ < end) {
      now_ = NextEvent() + network_.late * random_.Uniform();
      Deliver(deaths);
      member_.Wake(now_, outbox_);
      for (const Message& message : outbox_.TakeMessages()) {
        if (message.envelope.body_case() == proto::Envelope::kHeartbeatRequest) Send(message);
      }
    }
    return deaths;
  }

 private:
  absl::Time NextEvent() const {
    absl::Time next = member_.NextWake();
    if (!requests_.empty()) next = std::min(next, requests_.begin()->first);
    if (!replies_.empty()) next = std::min(next, replies_.begin()->first);
    return std::max(now_, next);
  }

  absl::Duration Delay() { return network_.jitter * random_.Uniform(); }

  void Send(const Message& request) {
    if (!random_.Chance(network_.loss)) requests_.emplace(now_ + Delay(), request);
  }

  // Delivers the messages that are due by now, in both directions.
  void Deliver(int& deaths) {
    while (!requests_.empty() && requests_.begin()->first <= now_) {
      const auto [arrival, request] = *requests_.begin();
      requests_.erase(requests_.begin());
      if (arrival > detector_.DeadAt()) ++deaths;
      detector_.Beat(arrival);
      if (random_.Chance(network_.loss)) continue;
      Message reply = MakeReply(request);
      reply.envelope.mutable_heartbeat_reply()->set_epoch(1);
      replies_.emplace(arrival + Delay(), std::move(reply));
    }
    while (!replies_.empty() && replies_.begin()->first <= now_) {
      member_.Receive(now_, replies_.begin()->second, outbox_);
      replies_.erase(replies_.begin());
    }
  }

  const Network network_;
  Random random_;
  absl::Time now_ = kStart;
  uint64_t next_request_id_ = 1;
  Outbox outbox_;
  Member member_;
  FailureDetector detector_;
  std::multimap<absl::Time, Message> requests_;
  std::multimap<absl::Time, Message> replies_;
};

int FalseDeaths(const Network& network, int nodes, absl::Duration life) {
  int deaths = 0;
  for (int i = 0; i < nodes; ++i) deaths += Node(network, i + 1).Live(kStart + life);
  return deaths;
}

TEST(FalseDeathTest, NobodyDiesOfABadNetworkInADay) {
  const Network bad{.loss = 0.05, .jitter = absl::Milliseconds(50), .late = absl::Milliseconds(50)};
  EXPECT_EQ(0, FalseDeaths(bad, 100, absl::Hours(24)));
}

}  // namespace
}  // namespace covey
