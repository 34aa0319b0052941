// SPDX-License-Identifier: Apache-2.0

// Functions and queries of tables of vectors, at a head and along its chain.

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "common/cluster/limits.h"
#include "common/vectors/vector_proto.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/chain_fixture.h"
#include "server/testing/shard_fixture.h"

namespace covey::server {
namespace {

using ::testing::HasSubstr;
using Function = VectorFunction::Kind;
using Query = VectorQuery::Kind;

constexpr Contract kAsync{.kind = Contract::Kind::kAsync};
constexpr uint32_t kVectors = 5;  // besides the values

void MakeVectors(TestJob& job) {
  job.spec().mutable_optimizer()->set_kind(proto::Optimizer::VECTORS);
  job.spec().mutable_optimizer()->set_vectors(kVectors);
}

TestJob JobOfVectors(const Contract& contract = kAsync) {
  TestJob job(contract, 1);
  MakeVectors(job);
  return job;
}

Message Call(ShardDriver& driver, uint64_t sequence, const std::vector<VectorFunction>& functions) {
  Message message = driver.ClientPush(sequence, {});
  message.frames.clear();
  proto::PushRequest& push = *message.envelope.mutable_push_request();
  push.clear_samples();
  ToProto(functions, *push.mutable_functions());
  return message;
}

Message Ask(ShardDriver& driver, const std::vector<VectorQuery>& queries) {
  Message message = driver.Pull();
  ToProto(queries, *message.envelope.mutable_pull_request()->mutable_queries());
  return message;
}

std::vector<VectorAnswer> AnswersIn(const Message& reply) {
  return AnswersFromProto(reply.envelope.pull_reply().answers()).value();
}

VectorQuery SumOf(uint32_t vector) { return {.kind = Query::kSum, .vector = vector}; }

TEST(VectorFunctions, AreAnUpdateOfTheirOwnAndQueriesSeeIt) {
  ShardDriver driver(JobOfVectors());
  // A push adds its mean to vector 1 and changes no value.
  ASSERT_TRUE(StatusOf(driver.Ask(driver.ClientPush(1, {2, 4, 6, 8}, 2))).ok());
  ASSERT_TRUE(StatusOf(driver.Ask(driver.ClientPush(2, {40, 80, 120, 160}, 4))).ok());
  EXPECT_EQ(driver.Values(), (std::vector<float>{0, 0, 0, 0}));
  const Message called =
      driver.Ask(Call(driver, 3,
                      {{.kind = Function::kCopy, .target = 2, .source = 1},
                       {.kind = Function::kScale, .target = 2, .scalar = -1},
                       {.kind = Function::kSet, .target = 5, .scalar = 3},
                       {.kind = Function::kAxpy, .target = 2, .source = 5, .scalar = 0.5},
                       {.kind = Function::kAxpy, .target = 2, .source = 2, .scalar = 1},
                       {.kind = Function::kAxpy, .target = 0, .source = 2, .scalar = 2}}));
  ASSERT_TRUE(StatusOf(called).ok()) << StatusOf(called);
  EXPECT_EQ(called.envelope.push_reply().applied_version(), 3u);
  EXPECT_TRUE(called.envelope.push_reply().durable());
  EXPECT_EQ(called.envelope.push_reply().state().samples(), 6u);
  // Vector 2: 2 * (1.5 - 11 i).
  EXPECT_EQ(driver.Values(), (std::vector<float>{-38, -82, -126, -170}));
  const Message reply = driver.Ask(Ask(driver, {SumOf(1),
                                                SumOf(2),
                                                {.kind = Query::kDot, .vector = 1, .other = 5},
                                                {.kind = Query::kNorm2, .vector = 5},
                                                {.kind = Query::kMin, .vector = 0},
                                                {.kind = Query::kTop, .vector = 2, .count = 2}}));
  ASSERT_TRUE(StatusOf(reply).ok()) << StatusOf(reply);
  EXPECT_TRUE(reply.frames.empty());
  EXPECT_EQ(reply.envelope.pull_reply().state().version(), 3u);
  EXPECT_EQ(AnswersIn(reply), (std::vector<VectorAnswer>{{.value = 110},
                                                         {.value = -208},
                                                         {.value = 330},
                                                         {.value = 36},
                                                         {.value = -170},
                                                         {.top = {{3, -85}, {2, -63}}}}));
}

TEST(VectorFunctions, ARepeatIsAnsweredAndNotApplied) {
  ShardDriver driver(JobOfVectors());
  const Message call = Call(driver, 1,
                            {{.kind = Function::kSet, .target = 1, .scalar = 1},
                             {.kind = Function::kAxpy, .source = 1, .scalar = 1}});
  const Message first = driver.Ask(call);
  ASSERT_TRUE(StatusOf(first).ok()) << StatusOf(first);
  EXPECT_FALSE(first.envelope.push_reply().duplicate());
  const Message again = driver.Ask(call);
  ASSERT_TRUE(StatusOf(again).ok()) << StatusOf(again);
  EXPECT_TRUE(again.envelope.push_reply().duplicate());
  EXPECT_EQ(again.envelope.push_reply().applied_version(), 1u);
  EXPECT_EQ(driver.Values(), (std::vector<float>{1, 1, 1, 1}));
}

TEST(VectorFunctions, AreRefusedWhereTheyHaveNoMeaning) {
  ShardDriver driver(JobOfVectors());
  const std::vector<VectorFunction> set = {{.kind = Function::kSet, .target = 1, .scalar = 1}};
  const auto refusal = [&](const std::function<void(Message&)>& change) {
    Message message = Call(driver, 1, set);
    change(message);
    return StatusOf(driver.Ask(message));
  };
  const auto function = [](Message& message) {
    return message.envelope.mutable_push_request()->mutable_functions(0);
  };
  const std::vector<std::pair<std::function<void(Message&)>, std::string>> cases = {
      {[&](Message& m) { function(m)->set_target(6); }, "vector 6 is none"},
      {[&](Message& m) { function(m)->set_scalar(1e300); }, "finite in float32"},
      {[&](Message& m) { function(m)->set_kind(static_cast<proto::VectorFunction::Kind>(9)); },
       "kind 9 is not known"},
      {[](Message& m) {
         m.frames.push_back(ShardDriver::Floats({1, 2, 3, 4}));
       },
       "functions, and a gradient"},
      {[](Message& m) { m.envelope.mutable_push_request()->set_samples(1); },
       "functions, and a gradient"},
      {[](Message& m) { m.envelope.mutable_push_request()->set_rate_factor(2); },
       "functions, and a gradient"},
      {[](Message& m) { m.envelope.mutable_push_request()->set_initialization_epoch(1); },
       "initial values"},
      {[](Message& m) {
         for (size_t i = 0; i < kVectorFunctionsMax; ++i) {
           *m.envelope.mutable_push_request()->add_functions() =
               m.envelope.push_request().functions(0);
         }
       },
       "257 functions"}};
  for (const auto& [change, words] : cases) {
    const absl::Status status = refusal(change);
    EXPECT_FALSE(status.ok()) << words;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  }
  Message of_group = driver.GroupPush(1, 1, {});
  of_group.frames.clear();
  of_group.envelope.mutable_push_request()->clear_samples();
  ToProto(set, *of_group.envelope.mutable_push_request()->mutable_functions());
  EXPECT_THAT(std::string(StatusOf(driver.Ask(of_group)).message()),
              HasSubstr("comes from a group"));
  EXPECT_THAT(std::string(StatusOf(driver.Ask(Ask(driver, {SumOf(6)}))).message()),
              HasSubstr("vector 6 is none"));
  Message state = driver.Pull();
  state.envelope.mutable_pull_request()->set_with_slots(true);
  EXPECT_THAT(std::string(StatusOf(driver.Ask(state)).message()),
              HasSubstr("copy one to vector 0"));
  // Nothing was applied.
  EXPECT_EQ(driver.Ask(driver.Pull()).envelope.pull_reply().state().version(), 0u);
}

TEST(VectorFunctions, OtherTablesRefuseThem) {
  ShardDriver driver{TestJob(kAsync, 1)};
  const std::vector<VectorFunction> set = {{.kind = Function::kSet, .scalar = 1}};
  EXPECT_THAT(std::string(StatusOf(driver.Ask(Call(driver, 1, set))).message()),
              HasSubstr("create a dense table with optimizer VECTORS"));
  EXPECT_THAT(std::string(StatusOf(driver.Ask(Ask(driver, {SumOf(0)}))).message()),
              HasSubstr("takes no queries"));
}

// As after a change of the contract.
TEST(VectorFunctions, AreRefusedWherePushesWait) {
  TestJob job = JobOfVectors();
  ShardDriver driver(job);
  job.SwitchTo({.kind = Contract::Kind::kBuffered, .buffer = 2});
  driver.AdoptView(job);
  const absl::Status status =
      StatusOf(driver.Ask(Call(driver, 1, {{.kind = Function::kSet, .target = 1, .scalar = 1}})));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("under buffered:2"));
}

TEST(VectorFunctions, AWaitingReaderIsAnsweredByTheUpdate) {
  ShardDriver driver(JobOfVectors());
  Message ask = Ask(driver, {SumOf(1)});
  ask.envelope.mutable_pull_request()->mutable_read()->set_min_version(1);
  EXPECT_TRUE(driver.Deliver(ask).empty());
  const std::vector<Message> sent =
      driver.Deliver(Call(driver, 1, {{.kind = Function::kSet, .target = 1, .scalar = 2}}));
  ASSERT_EQ(sent.size(), 2u);
  const auto answer = std::find_if(sent.begin(), sent.end(), [](const Message& message) {
    return message.envelope.has_pull_reply();
  });
  ASSERT_NE(answer, sent.end());
  EXPECT_EQ(AnswersIn(*answer)[0].value, 8);
}

// Three servers; the table's vectors are the shard's elements and slots on all of them.
class ChainOfVectors : public ::testing::Test {
 protected:
  ChainOfVectors() {
    MakeVectors(chain.job);
    chain.PublishToAll();
    chain.Settle();
  }
  Message AddOne(uint64_t sequence) {
    return Call(maker, sequence,
                {{.kind = Function::kSet, .target = 3, .scalar = 1},
                 {.kind = Function::kAxpy, .target = 4, .source = 3, .scalar = 1}});
  }
  // The head dies, and the others go on.
  void KillHead() {
    chain.Kill(0);
    chain.SetChain({{1, false}, {2, false}});
    chain.PublishToAll();
    chain.Settle();
  }
  double SumAt(uint32_t server) {
    return AnswersIn(chain.Ask(server, Ask(maker, {SumOf(4)})))[0].value;
  }

  ChainDriver chain{kAsync, 1, 3, 3};
  ShardDriver maker{JobOfVectors()};  // of requests
};

TEST_F(ChainOfVectors, EveryReplicaAppliesThem) {
  for (uint64_t i = 1; i <= 5; ++i) {
    ASSERT_TRUE(StatusOf(chain.Ask(0, AddOne(i))).ok());
    ASSERT_TRUE(StatusOf(chain.Ask(0, maker.ClientPush(100 + i, {1, 2, 3, 4}))).ok());
  }
  EXPECT_NE(chain.Digest(0), 0u);
  EXPECT_EQ(chain.Digest(1), chain.Digest(0));
  EXPECT_EQ(chain.Digest(2), chain.Digest(0));
  EXPECT_EQ(SumAt(0), 20);
}

TEST_F(ChainOfVectors, AHeadThatDiesBeforeItsReplyHasAppliedThemOnce) {
  ASSERT_TRUE(StatusOf(chain.Ask(0, AddOne(1))).ok());
  // Applied by all; the reply is lost.
  chain.Deliver(0, AddOne(2));
  chain.Settle();
  chain.Answers();
  KillHead();
  const Message again = chain.Ask(1, AddOne(2));
  ASSERT_TRUE(StatusOf(again).ok()) << StatusOf(again);
  EXPECT_TRUE(again.envelope.push_reply().duplicate());
  EXPECT_EQ(again.envelope.push_reply().applied_version(), 2u);
  EXPECT_EQ(SumAt(1), 8);
  EXPECT_EQ(chain.Digest(1), chain.Digest(2));
}

TEST_F(ChainOfVectors, AHeadThatDiesBeforeItsRecordLeftHasNotAnswered) {
  chain.lose = [](const Message& message) { return message.envelope.has_replicate_request(); };
  chain.Deliver(0, AddOne(1));
  // A reader sees nothing that could be lost.
  chain.Deliver(0, Ask(maker, {SumOf(4)}));
  chain.Settle();
  EXPECT_TRUE(chain.Answers().empty());
  chain.lose = [](const Message&) { return false; };
  KillHead();
  const Message again = chain.Ask(1, AddOne(1));
  ASSERT_TRUE(StatusOf(again).ok()) << StatusOf(again);
  EXPECT_FALSE(again.envelope.push_reply().duplicate());
  EXPECT_EQ(SumAt(1), 4);
}

TEST_F(ChainOfVectors, AJoiningReplicaIsFilledWithAllVectors) {
  for (uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(StatusOf(chain.Ask(0, AddOne(i))).ok());
  chain.Restart(2);
  chain.SetChain({{0, false}, {1, false}, {2, true}});
  chain.PublishToAll();
  chain.Pass(absl::Seconds(1));
  ASSERT_TRUE(StatusOf(chain.Ask(0, AddOne(4))).ok());
  EXPECT_NE(chain.Digest(2), 0u);
  EXPECT_EQ(chain.Digest(2), chain.Digest(0));
}

// The negative control of the tests above.
TEST_F(ChainOfVectors, AServerThatForgetsPushesIsFound) {
  const BugInPlace bug(PlantedBug::kApplyDuplicates);
  ASSERT_TRUE(StatusOf(chain.Ask(0, AddOne(1))).ok());
  ASSERT_TRUE(StatusOf(chain.Ask(0, AddOne(1))).ok());
  EXPECT_EQ(SumAt(0), 8);
}

}  // namespace
}  // namespace covey::server
