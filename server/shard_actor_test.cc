#include "server/shard_actor.h"

#include <cmath>
#include <limits>

#include "common/base/random.h"
#include "common/cluster/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard_fixture.h"

namespace covey::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Code = absl::StatusCode;

constexpr Contract kBsp{.kind = Contract::Kind::kBsp};
constexpr Contract kAsync{.kind = Contract::Kind::kAsync};

Contract Ssp(uint64_t staleness) { return {.kind = Contract::Kind::kSsp, .staleness = staleness}; }
Contract Buffered(uint64_t arrivals) {
  return {.kind = Contract::Kind::kBuffered, .buffer = arrivals};
}

Code CodeOf(const Message& reply) { return StatusOf(reply).code(); }
std::string TextOf(const Message& reply) { return std::string(StatusOf(reply).message()); }
const proto::PushReply& Pushed(const Message& reply) { return reply.envelope.push_reply(); }

TEST(ShardActor, AppliesAPushAndAnswersAPull) {
  ShardDriver driver(TestJob(kAsync, 0));
  EXPECT_THAT(driver.Values(), ElementsAre(0, 0, 0, 0));
  const Message push = driver.ClientPush(1, {2, 4, 6, 8}, 2);
  const Message reply = driver.Ask(push);
  EXPECT_EQ(CodeOf(reply), Code::kOk);
  EXPECT_EQ(reply.connection, push.connection);
  EXPECT_EQ(reply.envelope.header().request_id(), push.envelope.header().request_id());
  EXPECT_EQ(Pushed(reply).applied_version(), 1u);
  EXPECT_TRUE(Pushed(reply).durable());
  EXPECT_FALSE(Pushed(reply).has_values());
  EXPECT_TRUE(reply.frames.empty());

  driver.Pass(absl::Milliseconds(40));
  const Message pulled = driver.Ask(driver.Pull());
  EXPECT_THAT(ShardDriver::ValuesIn(pulled), ElementsAre(-1, -2, -3, -4));
  const proto::ShardState& state = pulled.envelope.pull_reply().state();
  EXPECT_EQ(state.version(), 1u);
  EXPECT_EQ(state.samples(), 2u);
  EXPECT_EQ(state.age_ms(), 40u);
  EXPECT_EQ(state.generation(), kTestGeneration);
}

TEST(ShardActor, AcknowledgesADuplicateWithItsFirstVersion) {
  ShardDriver driver(TestJob(kAsync, 0));
  const Message first = driver.ClientPush(1, {1, 1, 1, 1});
  driver.Ask(first);
  driver.Ask(driver.ClientPush(2, {1, 1, 1, 1}));
  const Message again = driver.Ask(first);
  EXPECT_EQ(CodeOf(again), Code::kOk);
  EXPECT_TRUE(Pushed(again).duplicate());
  EXPECT_EQ(Pushed(again).applied_version(), 1u);
  EXPECT_EQ(Pushed(again).state().version(), 2u);
  EXPECT_THAT(driver.Values(), ElementsAre(-2, -2, -2, -2));
  EXPECT_EQ(driver.actor().counters().duplicates, 1u);
  EXPECT_EQ(driver.actor().counters().pushes, 2u);
}

TEST(ShardActor, AppliesDuplicatesWhenSoPlanted) {
  const BugInPlace bug(PlantedBug::kApplyDuplicates);
  ShardDriver driver(TestJob(kAsync, 0));
  const Message push = driver.ClientPush(1, {1, 1, 1, 1});
  driver.Ask(push);
  driver.Ask(push);
  EXPECT_THAT(driver.Values(), ElementsAre(-2, -2, -2, -2));
}

TEST(ShardActor, SaysHowStaleAGradientWas) {
  ShardDriver driver(TestJob(kAsync, 0));
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    driver.Ask(driver.ClientPush(sequence, {1, 1, 1, 1}));
  }
  Message push = driver.ClientPush(4, {1, 1, 1, 1});
  push.envelope.mutable_push_request()->set_base_version(1);
  EXPECT_EQ(Pushed(driver.Ask(push)).staleness(), 2u);
}

TEST(ShardActor, NeverWritesValuesThatAreBeingSent) {
  ShardDriver driver(TestJob(kAsync, 0));
  const Message before = driver.Ask(driver.Pull());
  driver.Ask(driver.ClientPush(1, {1, 1, 1, 1}));
  EXPECT_THAT(ShardDriver::ValuesIn(before), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(driver.Values(), ElementsAre(-1, -1, -1, -1));
}

TEST(ShardActor, RefusesWhatIsNotFiniteAndStaysBitIdentical) {
  ShardDriver driver(TestJob(kAsync, 0));
  driver.Ask(driver.ClientPush(1, {0.1f, 0.2f, 0.3f, 0.4f}));
  const std::vector<float> before = driver.Values();
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    const Message reply = driver.Ask(driver.ClientPush(2, {1, 1, bad, 1}));
    EXPECT_EQ(CodeOf(reply), Code::kInvalidArgument);
    EXPECT_THAT(TextOf(reply), HasSubstr("client-0"));
    EXPECT_THAT(TextOf(reply), HasSubstr("table=weights shard=0"));
    EXPECT_THAT(TextOf(reply), HasSubstr("element 2"));
    EXPECT_EQ(driver.Values(), before);
  }
  EXPECT_EQ(driver.actor().counters().non_finite, 2u);
  // The refused sequence was not used up.
  const Message repaired = driver.Ask(driver.ClientPush(2, {1, 1, 1, 1}));
  EXPECT_FALSE(Pushed(repaired).duplicate());
  EXPECT_EQ(Pushed(repaired).applied_version(), 2u);
}

TEST(ShardActor, TakesWhatIsNotFiniteWhenTheTableSaysSo) {
  TestJob job(kAsync, 0);
  job.spec().set_non_finite(proto::ACCEPT);
  ShardDriver driver(job);
  EXPECT_EQ(CodeOf(driver.Ask(driver.ClientPush(1, {1, std::nanf(""), 1, 1}))), Code::kOk);
  EXPECT_TRUE(std::isnan(driver.Values()[1]));
}

TEST(ShardActor, RefusesBitsThatFlippedOnTheWayAndTakesTheRepetition) {
  ShardDriver driver(TestJob(kAsync, 0));
  const Message push = driver.ClientPush(1, {1, 2, 3, 4});
  Message bent = push;
  bent.frames[0] = driver.ClientPush(1, {1, 2, 3, 4.0000005f}).frames[0];
  bent.envelope.add_frame_checksums(FrameChecksum(push.frames[0]));
  EXPECT_EQ(CodeOf(driver.Ask(bent)), Code::kUnavailable);
  EXPECT_EQ(driver.Values(), std::vector<float>(4, 0));
  EXPECT_EQ(driver.actor().counters().malformed, 1u);
  EXPECT_FALSE(Pushed(driver.Ask(push)).duplicate());
}

TEST(ShardActor, RefusesAGradientOfAnotherSizeNamingBoth) {
  ShardDriver driver(TestJob(kAsync, 0));
  const Message reply = driver.Ask(driver.ClientPush(1, {1, 2, 3}));
  EXPECT_EQ(CodeOf(reply), Code::kInvalidArgument);
  EXPECT_THAT(TextOf(reply), HasSubstr("12 bytes"));
  EXPECT_THAT(TextOf(reply), HasSubstr("16 bytes"));
  Message twice = driver.ClientPush(1, {1, 2, 3, 4});
  twice.frames.push_back(twice.frames[0]);
  EXPECT_EQ(CodeOf(driver.Ask(twice)), Code::kInvalidArgument);
  EXPECT_EQ(driver.actor().counters().malformed, 2u);
  EXPECT_THAT(driver.Values(), ElementsAre(0, 0, 0, 0));
}

TEST(ShardActor, TellsWithoutBytesWhetherAPushWasReceived) {
  ShardDriver driver(TestJob({.kind = Contract::Kind::kBuffered, .buffer = 2}, 2));
  const Message push = ShardDriver::WithValues(driver.GroupPush(1, 1, {1, 2, 3, 4}), 1);
  Message question = push;
  question.frames.clear();
  EXPECT_EQ(CodeOf(driver.Ask(question)), Code::kUnavailable);
  EXPECT_EQ(Pushed(driver.Ask(push)).applied_version(), 0u);
  Message answer = driver.Ask(question);
  EXPECT_EQ(CodeOf(answer), Code::kOk);
  EXPECT_TRUE(Pushed(answer).duplicate());
  EXPECT_EQ(Pushed(answer).applied_version(), 0u);
  EXPECT_THAT(ShardDriver::ValuesIn(answer), ElementsAre(0, 0, 0, 0));
  driver.Deliver(driver.GroupPush(2, 1, {1, 2, 3, 4}));
  answer = driver.Ask(question);
  EXPECT_EQ(Pushed(answer).applied_version(), 1u);
  EXPECT_EQ(driver.actor().counters().pushes, 2u);
  // Nobody learns of another's pushes, or takes their answers.
  question.envelope.mutable_push_request()->mutable_id()->set_producer(2);
  EXPECT_EQ(CodeOf(driver.Ask(question)), Code::kInvalidArgument);
}

TEST(ShardActor, RefusesPushIdsThatLie) {
  ShardDriver driver(TestJob(kAsync, 1));
  std::vector<Message> lies(6, driver.GroupPush(1, 1, {1, 1, 1, 1}));
  lies[0].envelope.mutable_push_request()->mutable_id()->set_sequence(2);
  lies[1].envelope.mutable_push_request()->set_group(2);
  lies[2].envelope.mutable_push_request()->set_group_generation(4);
  lies[3].envelope.mutable_push_request()->set_samples(0);
  lies[4].envelope.mutable_push_request()->set_samples(~uint64_t{0});
  lies[5] = driver.ClientPush(1, {1, 1, 1, 1});
  lies[5].envelope.mutable_push_request()->mutable_id()->set_producer(2);
  for (const Message& lie : lies) {
    EXPECT_EQ(CodeOf(driver.Ask(lie)), Code::kInvalidArgument) << TextOf(driver.Ask(lie));
  }
  EXPECT_THAT(driver.Values(), ElementsAre(0, 0, 0, 0));
}

TEST(ShardActor, SaysWhereAShardIsWhenItIsNotHere) {
  TestJob job(kAsync, 0);
  ShardDriver driver(job);
  Message unknown = driver.Pull();
  unknown.envelope.mutable_pull_request()->set_table(8);
  EXPECT_EQ(CodeOf(driver.Ask(unknown)), Code::kNotFound);
  EXPECT_EQ(CodeOf(driver.Ask(driver.Pull(1))), Code::kNotFound);

  unknown.envelope.mutable_header()->set_epoch(6);
  const Message newer = driver.Ask(unknown);
  EXPECT_EQ(CodeOf(newer), Code::kUnavailable);
  EXPECT_THAT(TextOf(newer), HasSubstr("view epoch 5 is older than 6, retry"));

  Message stale = driver.ClientPush(1, {1, 1, 1, 1});
  stale.envelope.mutable_push_request()->set_shard_generation(2);
  EXPECT_EQ(CodeOf(driver.Ask(stale)), Code::kFailedPrecondition);

  job.view.mutable_tables(0)->mutable_shards(0)->mutable_chain(0)->set_loop(2);
  job.view.set_epoch(6);
  driver.AdoptView(job);
  const Message moved = driver.Ask(driver.Pull());
  EXPECT_EQ(CodeOf(moved), Code::kFailedPrecondition);
  EXPECT_THAT(TextOf(moved), HasSubstr("lives on server-0 loop 2"));
}

TEST(ShardActor, BeginsAnewUnderANewGeneration) {
  TestJob job(kAsync, 0);
  ShardDriver driver(job);
  driver.Ask(driver.ClientPush(1, {1, 1, 1, 1}));
  Message parked = driver.Pull();
  parked.envelope.mutable_pull_request()->mutable_read()->set_min_version(9);
  EXPECT_TRUE(driver.Deliver(parked).empty());

  job.view.mutable_tables(0)->mutable_shards(0)->set_generation(6);
  job.view.set_epoch(6);
  driver.AdoptView(job);
  const std::vector<Message> closed = driver.Sent();
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_EQ(CodeOf(closed[0]), Code::kFailedPrecondition);
  Message pull = driver.Pull();
  pull.envelope.mutable_pull_request()->set_shard_generation(6);
  EXPECT_THAT(ShardDriver::ValuesIn(driver.Ask(pull)), ElementsAre(0, 0, 0, 0));
}

TEST(ShardActor, HearsOfViewsFromItsOwnProcessOnly) {
  TestJob job(kAsync, 0);
  ShardDriver driver(job);
  job.view.clear_tables();
  job.view.set_epoch(9);
  Message forged = driver.Request(kTestServer);
  *forged.envelope.mutable_watch_view_reply()->mutable_view() = job.view;
  EXPECT_TRUE(driver.Deliver(forged).empty());
  EXPECT_EQ(driver.actor().counters().malformed, 1u);
  EXPECT_EQ(CodeOf(driver.Ask(driver.Pull())), Code::kOk);
}

TEST(ShardActor, OpensShardsWhenIdleAndOnDemand) {
  ShardDriver driver(TestJob(kAsync, 0, 4, 3));
  const auto open = [&](uint32_t shard) {
    return driver.actor().FindShard({TableId(kTestTable), ShardIndex(shard)}) != nullptr;
  };
  EXPECT_LE(driver.actor().NextWake(), driver.now());
  EXPECT_EQ(CodeOf(driver.Ask(driver.Pull(2))), Code::kOk);
  EXPECT_FALSE(open(0));
  driver.Wake();
  driver.Wake();
  EXPECT_TRUE(open(0) && open(1) && open(2));
  EXPECT_GT(driver.actor().NextWake(), driver.now());
}

TEST(ShardActor, SaysWhyATableCannotBeServed) {
  TestJob job(kAsync, 0);
  job.spec().mutable_contract()->set_kind(proto::Contract::LOCAL);
  ShardDriver driver(job);
  const Message reply = driver.Ask(driver.Pull());
  EXPECT_EQ(CodeOf(reply), Code::kInvalidArgument);
  EXPECT_THAT(TextOf(reply), HasSubstr("table=weights"));
}

TEST(ShardActor, RefusesTheDeadAndTheUnknown) {
  TestJob job(kAsync, 1);
  ShardDriver driver(job);
  Message stranger = driver.ClientPush(1, {1, 1, 1, 1});
  stranger.envelope.mutable_header()->set_node(50);
  stranger.envelope.mutable_push_request()->mutable_id()->set_producer(50);
  EXPECT_EQ(CodeOf(driver.Ask(stranger)), Code::kInvalidArgument);
  stranger.envelope.mutable_header()->set_epoch(6);
  EXPECT_EQ(CodeOf(driver.Ask(stranger)), Code::kUnavailable);

  const Message before = driver.GroupPush(1, 1, {1, 1, 1, 1});
  EXPECT_EQ(CodeOf(driver.Ask(before)), Code::kOk);
  job.view.mutable_nodes(1)->set_state(proto::Node::DEAD);
  job.EndGroup(1, proto::Group::BROKEN, "worker-0 dead: silent for 2.6 s");
  driver.AdoptView(job);
  EXPECT_EQ(CodeOf(driver.Ask(driver.ClientPush(1, {1, 1, 1, 1}))), Code::kAborted);
  const Message broken = driver.Ask(driver.GroupPush(1, 2, {1, 1, 1, 1}));
  EXPECT_EQ(CodeOf(broken), Code::kAborted);
  EXPECT_THAT(TextOf(broken), HasSubstr("worker-0 dead"));
  // What was acknowledged stays acknowledged.
  EXPECT_TRUE(Pushed(driver.Ask(before)).duplicate());
}

TEST(ShardActor, RefusesAnOlderIncarnationOfAProducer) {
  ShardDriver driver(TestJob(kAsync, 0));
  Message old = driver.ClientPush(1, {1, 1, 1, 1});
  Message fresh = old;
  fresh.envelope.mutable_push_request()->mutable_id()->set_producer_incarnation(5000);
  EXPECT_EQ(CodeOf(driver.Ask(old)), Code::kOk);
  EXPECT_FALSE(Pushed(driver.Ask(fresh)).duplicate());
  EXPECT_EQ(CodeOf(driver.Ask(old)), Code::kAborted);
}

TEST(ShardActor, BspAppliesOneUpdatePerStepAndAnswersAfterIt) {
  ShardDriver driver(TestJob(kBsp, 2));
  EXPECT_TRUE(
      driver.Deliver(ShardDriver::WithValues(driver.GroupPush(2, 1, {2, 2, 2, 2}, 1), 1)).empty());
  EXPECT_THAT(driver.Values(), ElementsAre(0, 0, 0, 0));
  const std::vector<Message> replies =
      driver.Deliver(ShardDriver::WithValues(driver.GroupPush(1, 1, {4, 4, 4, 4}, 2), 1));
  ASSERT_EQ(replies.size(), 2u);
  for (const Message& reply : replies) {
    EXPECT_EQ(CodeOf(reply), Code::kOk);
    EXPECT_EQ(Pushed(reply).applied_version(), 1u);
    EXPECT_THAT(ShardDriver::ValuesIn(reply), ElementsAre(-2, -2, -2, -2));
    ASSERT_EQ(Pushed(reply).state().clocks_size(), 2);
    EXPECT_EQ(Pushed(reply).state().clocks(0).step(), 1u);
    EXPECT_EQ(Pushed(reply).state().clocks(1).step(), 1u);
  }
}

TEST(ShardActor, BspHoldsAPlainPushAndTellsItsVersionLater) {
  ShardDriver driver(TestJob(kBsp, 2));
  const Message push = driver.GroupPush(1, 1, {1, 1, 1, 1});
  EXPECT_EQ(Pushed(driver.Ask(push)).applied_version(), 0u);
  const Message again = driver.Ask(push);
  EXPECT_TRUE(Pushed(again).duplicate());
  EXPECT_EQ(Pushed(again).applied_version(), 0u);
  driver.Ask(driver.GroupPush(2, 1, {1, 1, 1, 1}));
  EXPECT_EQ(Pushed(driver.Ask(push)).applied_version(), 1u);
}

TEST(ShardActor, BspRefusesPlainClientsAndGroupsThatRunAway) {
  ShardDriver driver(TestJob(kBsp, 2));
  EXPECT_EQ(CodeOf(driver.Ask(driver.ClientPush(1, {1, 1, 1, 1}))), Code::kInvalidArgument);
  for (uint64_t step = 1; step <= kHeldStepsPerGroupMax; ++step) {
    EXPECT_EQ(CodeOf(driver.Ask(driver.GroupPush(1, step, {1, 1, 1, 1}))), Code::kOk);
  }
  const uint64_t next = kHeldStepsPerGroupMax + 1;
  EXPECT_EQ(CodeOf(driver.Ask(driver.GroupPush(1, next, {1, 1, 1, 1}))), Code::kResourceExhausted);
  driver.Ask(driver.GroupPush(2, 1, {1, 1, 1, 1}));
  EXPECT_EQ(CodeOf(driver.Ask(driver.GroupPush(1, next, {1, 1, 1, 1}))), Code::kOk);
}

TEST(ShardActor, BspGoesOnWithoutABrokenGroup) {
  TestJob job(kBsp, 2);
  ShardDriver driver(job);
  EXPECT_TRUE(
      driver.Deliver(ShardDriver::WithValues(driver.GroupPush(1, 1, {1, 1, 1, 1}), 1)).empty());
  job.EndGroup(2, proto::Group::BROKEN, "worker-1 dead");
  driver.AdoptView(job);
  const std::vector<Message> replies = driver.Sent();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_THAT(ShardDriver::ValuesIn(replies[0]), ElementsAre(-1, -1, -1, -1));
}

// The bits of a sum depend on its order: under bsp that is the order of groups, whoever is first,
// and however the table is cut.
TEST(ShardActor, BspGivesTheSameBitsForEveryArrivalAndSharding) {
  constexpr uint64_t kElements = 12;
  Random random(4);
  std::vector<std::vector<float>> gradients(3);
  for (std::vector<float>& gradient : gradients) {
    for (uint64_t i = 0; i < kElements; ++i) {
      gradient.push_back(static_cast<float>(random.Uniform() * 1e3 - 500));
    }
  }
  std::vector<float> expected;
  for (const uint32_t shards : {1, 2, 3}) {
    std::vector<uint32_t> order = {1, 2, 3};
    do {
      TestJob job(kBsp, 3, kElements / shards, shards);
      job.spec().mutable_optimizer()->set_kind(proto::Optimizer::MOMENTUM);
      job.spec().mutable_optimizer()->set_momentum(0.9);
      ShardDriver driver(job);
      std::vector<float> values;
      for (uint32_t shard = 0; shard < shards; ++shard) {
        for (uint64_t step = 1; step <= 3; ++step) {
          for (uint32_t group : order) {
            const auto first = gradients[group - 1].begin() + shard * (kElements / shards);
            Message push =
                driver.GroupPush(group, step, {first, first + kElements / shards}, group);
            push.envelope.mutable_push_request()->mutable_id()->set_shard(shard);
            ASSERT_EQ(CodeOf(driver.Ask(push)), Code::kOk);
          }
        }
        const std::vector<float> part = driver.Values(shard);
        values.insert(values.end(), part.begin(), part.end());
      }
      if (expected.empty()) expected = values;
      ASSERT_EQ(values, expected) << shards << " shards";
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST(ShardActor, SspAppliesOnArrivalAndGatesReaders) {
  ShardDriver driver(TestJob(Ssp(1), 2));
  for (uint64_t step = 1; step <= 2; ++step) {
    const Message push = ShardDriver::WithValues(driver.GroupPush(1, step, {1, 1, 1, 1}), step);
    if (step == 1) {
      EXPECT_EQ(CodeOf(driver.Ask(push)), Code::kOk);  // One step ahead is allowed.
    } else {
      EXPECT_TRUE(driver.Deliver(push).empty());
    }
  }
  EXPECT_THAT(driver.Values(), ElementsAre(-2, -2, -2, -2));
  const std::vector<Message> replies = driver.Deliver(driver.GroupPush(2, 1, {1, 1, 1, 1}));
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_THAT(ShardDriver::ValuesIn(replies[1]), ElementsAre(-3, -3, -3, -3));
}

TEST(ShardActor, ParkedAnswersEndAtTheirDeadlineNamingWhoIsBehind) {
  ShardDriver driver(TestJob(Ssp(0), 2));
  EXPECT_TRUE(
      driver.Deliver(ShardDriver::WithValues(driver.GroupPush(1, 3, {1, 1, 1, 1}), 3)).empty());
  driver.Wake();
  driver.Pass(absl::Milliseconds(999));
  EXPECT_TRUE(driver.Wake().empty());
  driver.Pass(absl::Milliseconds(1));
  EXPECT_LE(driver.actor().NextWake(), driver.now());
  const std::vector<Message> replies = driver.Wake();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(CodeOf(replies[0]), Code::kDeadlineExceeded);
  EXPECT_TRUE(replies[0].envelope.has_push_reply());
  EXPECT_THAT(TextOf(replies[0]), HasSubstr("group 2 is at step 0 of 3"));
  EXPECT_GT(driver.actor().NextWake(), driver.now());
}

TEST(ShardActor, ARetryTakesThePlaceOfItsParkedRequest) {
  ShardDriver driver(TestJob(Ssp(0), 2));
  Message push = ShardDriver::WithValues(driver.GroupPush(1, 1, {1, 1, 1, 1}), 1);
  EXPECT_TRUE(driver.Deliver(push).empty());
  push.connection = 78;
  EXPECT_TRUE(driver.Deliver(push).empty());
  const std::vector<Message> replies = driver.Deliver(driver.GroupPush(2, 1, {1, 1, 1, 1}));
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(replies[1].connection, 78u);
  EXPECT_EQ(Pushed(replies[1]).applied_version(), 1u);
  EXPECT_THAT(ShardDriver::ValuesIn(replies[1]), ElementsAre(-2, -2, -2, -2));
}

TEST(ShardActor, ParksOnlySoMany) {
  ShardDriver driver(TestJob(kAsync, 0));
  for (size_t i = 0; i <= kParkedPerShardMax; ++i) {
    Message pull = driver.Pull();
    pull.envelope.mutable_pull_request()->mutable_read()->set_min_version(1);
    const std::vector<Message> replies = driver.Deliver(pull);
    if (i < kParkedPerShardMax) {
      ASSERT_TRUE(replies.empty());
    } else {
      ASSERT_EQ(replies.size(), 1u);
      EXPECT_EQ(CodeOf(replies[0]), Code::kResourceExhausted);
    }
  }
  EXPECT_EQ(driver.Deliver(driver.ClientPush(1, {1, 1, 1, 1})).size(), kParkedPerShardMax + 1);
}

TEST(ShardActor, ReadersMayDemandVersionAgeAndStalenessOfTheirOwn) {
  ShardDriver driver(TestJob(kAsync, 2));
  driver.Ask(driver.GroupPush(1, 4, {1, 1, 1, 1}));
  driver.Pass(absl::Seconds(1));
  std::vector<Message> pulls(3, driver.Pull());
  pulls[0].envelope.mutable_pull_request()->mutable_read()->set_min_version(2);
  pulls[1].envelope.mutable_pull_request()->mutable_read()->set_max_age_ms(500);
  proto::ReadBound& bound = *pulls[2].envelope.mutable_pull_request()->mutable_read();
  bound.set_step(4);
  bound.set_max_staleness(2);
  for (size_t i = 0; i < pulls.size(); ++i) {
    pulls[i].envelope.mutable_header()->set_request_id(100 + i);
    EXPECT_TRUE(driver.Deliver(pulls[i]).empty());
  }
  // The first two are content with any update; the third waits for group 2 at step 2.
  EXPECT_EQ(driver.Deliver(driver.GroupPush(2, 1, {1, 1, 1, 1})).size(), 3u);
  EXPECT_EQ(driver.Deliver(driver.GroupPush(2, 2, {1, 1, 1, 1})).size(), 2u);

  Message impatient = driver.Pull();
  impatient.envelope.mutable_pull_request()->mutable_read()->set_min_version(99);
  impatient.envelope.mutable_pull_request()->set_deadline_ms(0);
  EXPECT_EQ(CodeOf(driver.Ask(impatient)), Code::kDeadlineExceeded);
}

TEST(ShardActor, AnswersStaleWhenSoPlanted) {
  const BugInPlace bug(PlantedBug::kAnswerStaleReads);
  ShardDriver driver(TestJob(Ssp(0), 2));
  const Message reply =
      driver.Ask(ShardDriver::WithValues(driver.GroupPush(1, 5, {1, 1, 1, 1}), 5));
  EXPECT_EQ(CodeOf(reply), Code::kOk);
  EXPECT_TRUE(Pushed(reply).has_values());
}

TEST(ShardActor, BufferedUpdatesOncePerKArrivals) {
  ShardDriver driver(TestJob(Buffered(2), 2));
  const Message first =
      driver.Ask(ShardDriver::WithValues(driver.GroupPush(1, 1, {2, 2, 2, 2}, 1), 1));
  EXPECT_EQ(Pushed(first).applied_version(), 0u);
  EXPECT_THAT(ShardDriver::ValuesIn(first), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(Pushed(first).state().clocks_size(), 0);
  const Message second = driver.Ask(driver.GroupPush(2, 1, {4, 4, 4, 4}, 2));
  EXPECT_EQ(Pushed(second).applied_version(), 1u);
  EXPECT_EQ(Pushed(second).state().clocks_size(), 2);
  EXPECT_THAT(driver.Values(), ElementsAre(-2, -2, -2, -2));
}

TEST(ShardActor, BufferedFlushesTheTailWhenGroupsEnd) {
  for (const uint64_t arrivals : {0, 2}) {
    TestJob job(Buffered(arrivals), 2);
    ShardDriver driver(job);
    const Message push = driver.GroupPush(1, 1, {2, 2, 2, 2});
    EXPECT_EQ(Pushed(driver.Ask(push)).applied_version(), 0u);
    job.EndGroup(2, proto::Group::DONE);
    driver.AdoptView(job);
    EXPECT_THAT(driver.Values(), ElementsAre(-2, -2, -2, -2)) << arrivals;
    EXPECT_EQ(Pushed(driver.Ask(push)).applied_version(), 1u);
  }
}

TEST(ShardActor, ReportsItsLoadToTheControlLoop) {
  ShardActor actor({.malformed_at_transport = [] { return uint64_t{5}; }});
  Outbox outbox;
  absl::Time now = absl::UnixEpoch();
  EXPECT_EQ(actor.NextWake(), absl::InfiniteFuture());
  TestJob job(kAsync, 0);
  Message view;
  view.set_to({kTestServer, 1});
  *view.envelope.mutable_watch_view_reply()->mutable_view() = job.view;
  actor.Receive(now, view, outbox);
  now += absl::Seconds(1);
  actor.Wake(now, outbox);
  now += absl::Seconds(1);
  actor.Wake(now, outbox);
  const std::vector<Message> sent = outbox.TakeMessages();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[1].to(), (Address{kTestServer, 0}));
  EXPECT_EQ(sent[1].envelope.heartbeat_request().load().malformed(), 5u);
  EXPECT_EQ(sent[1].envelope.heartbeat_request().load().table_bytes(), 16u);
}

}  // namespace
}  // namespace covey::server
