// SPDX-License-Identifier: Apache-2.0
#include "client/cli/scheduler/scheduler_stub.h"

#include <grpcpp/grpcpp.h>
#include <poll.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "common/net/scheduler_failover.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/scheduler_service.grpc.pb.h"

namespace covey::cli {
namespace {

using ::testing::HasSubstr;

enum class Mood {
  kLeads,
  kStandsBy,
  kLeadsWhenAskedAgain,
  // Leads, but cannot serve the request.
  kNotReady,
};

// Answers a scale request with its own epoch, which identifies it.
class FakeScheduler : public proto::Scheduler::Service {
 public:
  FakeScheduler(uint64_t epoch, Mood mood, const std::string& at = "127.0.0.1:0")
      : epoch_(epoch), mood_(mood) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(at, grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeScheduler() override { server_->Shutdown(); }

  grpc::Status Scale(grpc::ServerContext* context, const proto::ScaleRequest*,
                     proto::ScaleReply* reply) override {
    if (mood_ == Mood::kStandsBy || mood_ == Mood::kLeadsWhenAskedAgain) {
      if (mood_ == Mood::kLeadsWhenAskedAgain) mood_ = Mood::kLeads;
      context->AddTrailingMetadata(kStandbyMetadata, "1");
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "stands by");
    }
    if (mood_ == Mood::kNotReady) return {grpc::StatusCode::UNAVAILABLE, "waits for servers"};
    reply->set_epoch(epoch_);
    return grpc::Status::OK;
  }

  // One event per reply, numbered from 1.
  grpc::Status GetStatus(grpc::ServerContext* context, const proto::StatusRequest* request,
                         proto::StatusReply* reply) override {
    if (mood_ == Mood::kStandsBy) {
      context->AddTrailingMetadata(kStandbyMetadata, "1");
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "stands by");
    }
    const uint64_t answer = ++answers_;
    reply->set_uptime_ms(1000 * answer);
    for (uint64_t number = request->events_after() + 1; number <= answer; ++number) {
      reply->add_events()->set_sequence(number);
    }
    return grpc::Status::OK;
  }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  const uint64_t epoch_;
  Mood mood_;
  uint64_t answers_ = 0;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// An address where no scheduler listens any more.
std::string DeadAddress() { return FakeScheduler(0, Mood::kLeads).address(); }

TEST(SchedulerStubTest, TheOneThatLeadsAnswersWhereverItStandsInTheList) {
  FakeScheduler standby(1, Mood::kLeadsWhenAskedAgain);
  FakeScheduler leader(2, Mood::kLeads);
  SchedulerStub stub(
      {.addresses = absl::StrCat(DeadAddress(), ", ", standby.address(), ",", leader.address()),
       .tls = ""});
  for (int i = 0; i < 3; ++i) {
    const auto reply = stub.Scale({});
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->epoch(), 2u) << "the one that answered last is asked first";
  }
}

TEST(SchedulerStubTest, WhatTheLeaderSaysIsTheAnswer) {
  FakeScheduler leader(1, Mood::kNotReady);
  FakeScheduler other(2, Mood::kLeads);
  SchedulerStub stub(
      {.addresses = absl::StrCat(leader.address(), ",", other.address()), .tls = ""});
  const absl::Status status = stub.Scale({}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("waits for servers"));
}

TEST(SchedulerStubTest, SaysThatAllStandByOrThatNobodyAnswers) {
  FakeScheduler standby(1, Mood::kStandsBy);
  const std::string dead = DeadAddress();
  const absl::Status waits =
      SchedulerStub({.addresses = absl::StrCat(standby.address(), ",", dead), .tls = ""})
          .Scale({})
          .status();
  EXPECT_EQ(waits.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(waits.message(), HasSubstr(absl::StrCat(standby.address(), ": stands by")));
  const absl::Status silence =
      SchedulerStub({.addresses = absl::StrCat(dead, ",", dead), .tls = ""}).Scale({}).status();
  EXPECT_EQ(silence.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(silence.message(),
              HasSubstr(absl::StrCat("no scheduler answers at ", dead, ",", dead)));
}

absl::StatusOr<proto::StatusReply> AskAndTake(StatusPoller& poller) {
  poller.Ask();
  EXPECT_TRUE(poller.asking());
  pollfd answered = {.fd = poller.descriptor(), .events = POLLIN, .revents = 0};
  poll(&answered, 1, /*timeout=*/-1);
  return poller.Take().value();
}

TEST(SchedulerStubTest, IsConnectedSoonAfterASchedulerListens) {
  const std::string address = DeadAddress();
  SchedulerStub stub({.addresses = address});
  EXPECT_TRUE(absl::IsUnavailable(stub.GetStatus().status()));
  EXPECT_FALSE(stub.AwaitConnection(absl::Milliseconds(200)));
  const FakeScheduler scheduler(1, Mood::kLeads, address);
  ASSERT_TRUE(stub.AwaitConnection(absl::Seconds(20)));
  EXPECT_TRUE(stub.GetStatus().ok());
}

TEST(StatusPollerTest, AsksTheNextUntilOneAnswers) {
  FakeScheduler standby(1, Mood::kStandsBy);
  FakeScheduler leader(2, Mood::kLeads);
  StatusPoller poller(
      {.addresses = absl::StrCat(standby.address(), ",", DeadAddress(), ",", leader.address()),
       .tls = ""});
  EXPECT_THAT(AskAndTake(poller).status().message(), HasSubstr("stands by"));
  EXPECT_FALSE(AskAndTake(poller).ok());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(AskAndTake(poller).ok()) << i;
}

TEST(StatusPollerTest, TakesAllEventsOfASchedulerThatWasStartedAnew) {
  auto before = std::make_unique<FakeScheduler>(1, Mood::kLeads);
  FakeScheduler after(2, Mood::kLeads);
  StatusPoller poller(
      {.addresses = absl::StrCat(before->address(), ",", after.address()), .tls = ""});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(AskAndTake(poller)->events_size(), 1) << i;
  before.reset();
  EXPECT_FALSE(AskAndTake(poller).ok());
  EXPECT_EQ(AskAndTake(poller)->events_size(), 0) << "asked for those after the third";
  EXPECT_EQ(AskAndTake(poller)->events_size(), 2);
}

std::optional<int> Load(const char* addresses) {
  SchedulerOptions asked;
  ConfigFile options("status", "Says how the cluster is.");
  asked.AddTo(options);
  const char* const arguments[] = {"status", "--scheduler", addresses};
  return asked.Load(options, 3, arguments);
}

TEST(SchedulerOptionsTest, TakesSeveralAddressesAndRefusesWrongOnes) {
  EXPECT_EQ(Load("a:7000"), std::nullopt);
  EXPECT_EQ(Load("a:7000,b:7001"), std::nullopt);
  EXPECT_TRUE(Load("a:7000,b").has_value());
  EXPECT_TRUE(Load("a:70000,b:7000").has_value());
  EXPECT_TRUE(Load(",").has_value());
}

}  // namespace
}  // namespace covey::cli
