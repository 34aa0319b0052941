// SPDX-License-Identifier: Apache-2.0

// Pushes of a matrix's gradient in factors, at a head and along its chain.

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "common/net/testing/frame_lender.h"
#include "common/tensor/codec.h"
#include "common/tensor/outer_product.h"
#include "common/tensor/wire_format_proto.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/chain_fixture.h"
#include "server/testing/shard_fixture.h"
#include "server/testing/sparse_fixture.h"

namespace covey::server {
namespace {

using ::testing::HasSubstr;

constexpr Contract kAsync{.kind = Contract::Kind::kAsync};
constexpr Contract kBuffered2{.kind = Contract::Kind::kBuffered, .buffer = 2};

// 5 x 120 elements in two shards of 300: the first one ends, and the second one begins, in the
// middle of row 2. Each has a part of three rows, so that two terms have 246 elements.
constexpr uint64_t kRows = 5;
constexpr uint64_t kColumns = 120;
constexpr uint64_t kElements = 300;
constexpr MatrixRange kShards[] = {
    {.first_element = 0, .elements = kElements, .columns = kColumns},
    {.first_element = kElements, .elements = kElements, .columns = kColumns}};

void MakeMatrix(TestJob& job) {
  job.spec().clear_shape();
  job.spec().add_shape(kRows);
  job.spec().add_shape(4);
  job.spec().add_shape(kColumns / 4);
}

TestJob JobOfMatrix(const Contract& contract = kAsync, uint32_t groups = 2) {
  TestJob job(contract, groups, kElements, 2);
  MakeMatrix(job);
  return job;
}

// A gradient of two terms for the whole matrix.
struct Gradient {
  std::vector<float> left = std::vector<float>(2 * kRows);
  std::vector<float> right = std::vector<float>(2 * kColumns);

  Factors factors() const { return {.terms = 2, .left = left, .right = right}; }
  std::vector<float> Elements(uint32_t shard) const {
    std::vector<float> elements(kElements, 0.0f);
    for (uint64_t i = 0; i < kElements; ++i) {
      const uint64_t place = shard * kElements + i;
      for (uint64_t term = 0; term < 2; ++term) {
        elements[i] +=
            left[term * kRows + place / kColumns] * right[term * kColumns + place % kColumns];
      }
    }
    return elements;
  }
};

Gradient Integers(int seed) {
  Gradient gradient;
  int next = seed;
  for (float& value : gradient.left) value = static_cast<float>(++next % 7 - 3);
  for (float& value : gradient.right) value = static_cast<float>(++next % 11 - 5);
  return gradient;
}

Gradient RandomGradient(Random& random) {
  Gradient gradient;
  for (float& value : gradient.left) value = static_cast<float>(random.Uniform() * 2 - 1);
  for (float& value : gradient.right) value = static_cast<float>(random.Uniform() * 2 - 1);
  return gradient;
}

Buffer FrameOf(const Gradient& gradient, uint32_t shard, WireFormat format) {
  Buffer frame = Buffer::Allocate(FactorBytes(format, kShards[shard], 2));
  EncodeFactors(format, kShards[shard], gradient.factors(), {frame.MutableData(), frame.size()});
  return frame;
}

// Puts the factors in place of the push's elements.
Message InFactors(Message push, const Gradient& gradient, uint32_t shard = 0,
                  WireFormat format = WireFormat::kFloat32) {
  proto::PushRequest& request = *push.envelope.mutable_push_request();
  request.mutable_id()->set_shard(shard);
  request.mutable_outer_product()->set_terms(2);
  request.set_format(ToProto(format));
  push.frames = {FrameOf(gradient, shard, format)};
  return push;
}

TEST(OuterProducts, AnUpdateIsThatOfTheElements) {
  ShardDriver in_factors(JobOfMatrix());
  std::vector<float> expected(2 * kElements, 0.0f);
  for (uint64_t i = 1; i <= 10; ++i) {
    const Gradient gradient = Integers(static_cast<int>(13 * i));
    for (const uint32_t shard : {0, 1}) {
      const Message push = InFactors(in_factors.ClientPush(i, {}, 2), gradient, shard);
      EXPECT_EQ(push.frames[0].size(), 4u * 2 * (3 + kColumns));
      const Message reply = in_factors.Ask(push);
      ASSERT_TRUE(StatusOf(reply).ok()) << StatusOf(reply);
      EXPECT_EQ(reply.envelope.push_reply().applied_version(), i);
      EXPECT_EQ(reply.envelope.push_reply().state().samples(), 2 * i);
      const std::vector<float> elements = gradient.Elements(shard);
      for (uint64_t e = 0; e < kElements; ++e) expected[shard * kElements + e] -= elements[e] / 2;
    }
  }
  std::vector<float> values = in_factors.Values(0);
  const std::vector<float> second = in_factors.Values(1);
  values.insert(values.end(), second.begin(), second.end());
  EXPECT_EQ(values, expected);
  EXPECT_NE(values, std::vector<float>(2 * kElements, 0.0f));
}

TEST(OuterProducts, AnUpdateHasTheBitsOfTheSum) {
  ShardDriver in_factors(JobOfMatrix());
  ShardDriver in_elements(JobOfMatrix());
  Random random(1);
  for (uint64_t i = 1; i <= 10; ++i) {
    const Gradient gradient = RandomGradient(random);
    Message push = in_elements.ClientPush(i, gradient.Elements(1));
    push.envelope.mutable_push_request()->mutable_id()->set_shard(1);
    ASSERT_TRUE(StatusOf(in_elements.Ask(push)).ok());
    ASSERT_TRUE(
        StatusOf(in_factors.Ask(InFactors(in_factors.ClientPush(i, {}), gradient, 1))).ok());
  }
  EXPECT_EQ(in_factors.Values(1), in_elements.Values(1));
}

TEST(OuterProducts, TravelInEveryFormat) {
  Random random(2);
  const Gradient gradient = RandomGradient(random);
  const std::vector<float> elements = gradient.Elements(1);
  for (const WireFormat format : kWireFormats) {
    if (!AreFactorsSmaller(format, kShards[1], 2)) continue;
    ShardDriver driver(JobOfMatrix());
    ASSERT_TRUE(StatusOf(driver.Ask(InFactors(driver.ClientPush(1, {}), gradient, 1, format))).ok())
        << WireFormatName(format);
    const std::vector<float> values = driver.Values(1);
    // Two terms, the factors of which float8 rounds to a sixteenth.
    const double error = format == WireFormat::kFloat8Block ? 0.26 : 0.04;
    for (uint64_t e = 0; e < kElements; ++e) {
      EXPECT_NEAR(-values[e], elements[e], error) << WireFormatName(format) << e;
    }
  }
}

TEST(OuterProducts, AreAddedUpWithOtherPushes) {
  ShardDriver driver(JobOfMatrix(kBuffered2));
  const Gradient gradient = Integers(5);
  std::vector<float> expected = gradient.Elements(1);
  for (float& element : expected) element = -(element + 7) / 2;
  FrameLender lender;
  // It waits, and not in the memory of its sender.
  driver.Deliver(lender.Lend(InFactors(driver.GroupPush(1, 1, {}), gradient, 1)));
  EXPECT_EQ(lender.out(), 0u);
  EXPECT_EQ(driver.Values(1), std::vector<float>(kElements, 0.0f));
  Message other = driver.GroupPush(2, 1, std::vector<float>(kElements, 7));
  other.envelope.mutable_push_request()->mutable_id()->set_shard(1);
  driver.Deliver(other);
  EXPECT_EQ(driver.Values(1), expected);
}

TEST(OuterProducts, ARepeatIsAnsweredAndAQueryHasNoFrame) {
  ShardDriver driver(JobOfMatrix());
  const Gradient gradient = Integers(1);
  const Message push = InFactors(driver.ClientPush(1, {}), gradient);
  Message query = push;
  query.frames.clear();
  EXPECT_EQ(StatusOf(driver.Ask(query)).code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(driver.Ask(push).envelope.push_reply().duplicate());
  const std::vector<float> values = driver.Values();
  for (const Message& repeat : {push, query}) {
    const Message reply = driver.Ask(repeat);
    ASSERT_TRUE(StatusOf(reply).ok()) << StatusOf(reply);
    EXPECT_TRUE(reply.envelope.push_reply().duplicate());
  }
  EXPECT_EQ(driver.Values(), values);
}

// The words of the refusal of a push that `change` has changed; nothing is applied.
void ExpectRefused(TestJob job, const std::function<void(Message&)>& change,
                   const std::string& words) {
  ShardDriver driver(job);
  Message push = InFactors(driver.ClientPush(1, {}), Integers(1));
  change(push);
  const absl::Status status = StatusOf(driver.Ask(push));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << words << ": " << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  if (job.spec().has_sparse()) return;
  EXPECT_EQ(driver.Ask(driver.Pull()).envelope.pull_reply().state().version(), 0u) << words;
}

TEST(OuterProducts, LyingRequestsAreRefused) {
  const auto floats = [](size_t count) {
    return ShardDriver::Floats(std::vector<float>(count, 1));
  };
  const auto terms = [&](uint32_t count) {
    return [count, floats](Message& m) {
      m.envelope.mutable_push_request()->mutable_outer_product()->set_terms(count);
      if (count < 100) m.frames = {floats(count * 123)};
    };
  };
  const std::vector<std::pair<std::function<void(Message&)>, std::string>> cases = {
      {terms(0), "factors of 0 terms"},
      // 369 elements in place of 300.
      {terms(3), "for 3 rows and 120 columns; push from 1 to 1024"},
      {terms(1025), "1025 terms"},
      {terms(~uint32_t{0}), "4294967295 terms"},
      {[&](Message& m) { m.frames = {floats(245)}; },
       "980 bytes in 1 frames, the shard has 984 bytes as float32 for factors of 2 terms"},
      {[&](Message& m) { m.frames = {floats(247)}; }, "988 bytes in 1 frames"},
      {[&](Message& m) { m.frames = {floats(300)}; }, "1200 bytes in 1 frames"},
      {[&](Message& m) { m.frames.push_back(floats(246)); }, "in 2 frames"},
      {[](Message& m) { m.envelope.mutable_push_request()->set_format(proto::WIRE_FLOAT16); },
       "has 492 bytes as float16"},
      {[](Message& m) {
         m.envelope.mutable_push_request()->set_format(static_cast<proto::WireFormat>(99));
       },
       "wire format 99"},
      {[](Message& m) { m.envelope.mutable_push_request()->mutable_keys()->set_count(1); },
       "the table is dense"},
      {[](Message& m) { m.envelope.mutable_push_request()->set_samples(0); }, "0 samples"},
      {[](Message& m) {
         m.frames.clear();
         m.envelope.mutable_push_request()->clear_samples();
         m.envelope.mutable_push_request()->add_functions();
       },
       "functions, and a gradient"}};
  for (const auto& [change, words] : cases) ExpectRefused(JobOfMatrix(), change, words);

  const auto nothing = [](Message&) {};
  TestJob vector = JobOfMatrix();
  vector.spec().clear_shape();
  vector.spec().add_shape(2 * kElements);
  ExpectRefused(vector, nothing, "dense tables of two dimensions");
  TestJob vectors = JobOfMatrix();
  vectors.spec().mutable_optimizer()->set_kind(proto::Optimizer::VECTORS);
  vectors.spec().mutable_optimizer()->set_vectors(2);
  ExpectRefused(vectors, nothing, "not tables of vectors");
  TestJob given = JobOfMatrix();
  given.spec().mutable_initializer()->set_kind(proto::Initializer::GIVEN);
  given.view.mutable_tables(0)->mutable_initialization()->set_epoch(1);
  given.view.mutable_tables(0)->mutable_initialization()->set_node(kTestClient.value());
  ExpectRefused(
      given, [](Message& m) { m.envelope.mutable_push_request()->set_initialization_epoch(1); },
      "initial values are elements");
  TestJob sparse(kAsync, 1);
  MakeSparse(sparse, 2);
  ExpectRefused(sparse, nothing, "push its elements or rows");
}

TEST(OuterProducts, WhatIsNotFiniteIsRefusedWithItsPlace) {
  ShardDriver driver(JobOfMatrix());
  const auto refusal = [&](const Gradient& gradient) {
    return std::string(
        StatusOf(driver.Ask(InFactors(driver.ClientPush(1, {}), gradient, 1))).message());
  };
  Gradient overflows = Integers(1);
  overflows.left[3] = 1e30f;
  overflows.right[5] = 1e30f;
  EXPECT_THAT(refusal(overflows), HasSubstr("client-0 pushed inf at element 65 of the shard "
                                            "(element 365 of the table)"));
  Gradient nan = Integers(1);
  nan.left[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(refusal(nan), HasSubstr("nan at element 60 of the shard"));
  EXPECT_EQ(driver.actor().counters().non_finite, 2u);
}

// Any terms, format and frame: applied if it has the size of such factors, and never anything else.
TEST(OuterProducts, NoRequestDoesHarm) {
  ShardDriver driver(JobOfMatrix());
  Random random(3);
  int applied = 0;
  for (uint64_t i = 1; i <= 3000; ++i) {
    const auto terms = static_cast<uint32_t>(random.Chance(0.8) ? random.Below(5) : random.Next());
    const auto shard = static_cast<uint32_t>(random.Below(2));
    const WireFormat format = kWireFormats[random.Below(std::size(kWireFormats))];
    const bool is_possible = terms > 0 && AreFactorsSmaller(format, kShards[shard], terms);
    const size_t bytes = is_possible && random.Chance(0.7)
                             ? FactorBytes(format, kShards[shard], terms)
                             : 4 * random.Below(400);
    Message push = driver.ClientPush(i, {});
    proto::PushRequest& request = *push.envelope.mutable_push_request();
    request.mutable_id()->set_shard(shard);
    request.mutable_outer_product()->set_terms(terms);
    request.set_format(ToProto(format));
    Buffer frame = Buffer::Allocate(bytes);
    for (size_t b = 0; b < bytes; ++b) frame.MutableData()[b] = random.Chance(0.1) ? 1 : 0;
    push.frames = {frame};
    const bool fits = is_possible && bytes == FactorBytes(format, kShards[shard], terms);
    const bool is_query = bytes == 0;
    const absl::Status status = StatusOf(driver.Ask(push));
    if (fits && !is_query) {
      EXPECT_TRUE(status.ok()) << status;
      ++applied;
    } else {
      EXPECT_FALSE(status.ok());
    }
  }
  EXPECT_GT(applied, 500);
}

// Three servers, and the first shard of the matrix.
class ChainOfMatrix : public ::testing::Test {
 protected:
  ChainOfMatrix() { Publish(chain); }
  static void Publish(ChainDriver& chain) {
    MakeMatrix(chain.job);
    // The other half of the matrix lies on no server.
    proto::Shard& rest = *chain.job.view.mutable_tables(0)->add_shards();
    rest.set_index(1);
    rest.set_first_element(kElements);
    rest.set_element_count(kElements);
    chain.PublishToAll();
    chain.Settle();
  }
  static std::vector<Message> RecordsIn(const std::vector<Message>& messages) {
    std::vector<Message> records;
    std::copy_if(messages.begin(), messages.end(), std::back_inserter(records),
                 [](const Message& m) { return m.envelope.has_replicate_request(); });
    return records;
  }

  ChainDriver chain{kAsync, 2, 3, 3, kElements};
  ShardDriver maker{JobOfMatrix()};  // of requests
};

TEST_F(ChainOfMatrix, ARecordOfOnePushHasTheFactors) {
  Random random(4);
  for (uint64_t i = 1; i <= 8; ++i) {
    const WireFormat format = kWireFormats[i % std::size(kWireFormats)];
    if (!AreFactorsSmaller(format, kShards[0], 2)) continue;
    const Gradient gradient = RandomGradient(random);
    const Message push = InFactors(maker.ClientPush(i, {}), gradient, 0, format);
    chain.sent.clear();
    ASSERT_TRUE(StatusOf(chain.Ask(0, push)).ok());
    const std::vector<Message> records = RecordsIn(chain.sent);
    ASSERT_EQ(records.size(), 2u);
    for (const Message& record : records) {
      EXPECT_EQ(record.envelope.replicate_request().outer_product().terms(), 2u);
      ASSERT_EQ(record.frames.size(), 1u);
      EXPECT_THAT(record.frames[0].bytes(), ::testing::ElementsAreArray(push.frames[0].bytes()));
    }
  }
  EXPECT_NE(chain.Digest(0), 0u);
  EXPECT_EQ(chain.Digest(1), chain.Digest(0));
  EXPECT_EQ(chain.Digest(2), chain.Digest(0));
}

TEST_F(ChainOfMatrix, ARecordOfSeveralPushesHasTheSum) {
  ChainDriver buffered(kBuffered2, 2, 3, 3, kElements);
  Publish(buffered);
  Random random(5);
  buffered.Deliver(0, InFactors(maker.GroupPush(1, 1, {}), RandomGradient(random)));
  buffered.Deliver(0, InFactors(maker.GroupPush(2, 1, {}), RandomGradient(random)));
  buffered.Settle();
  const std::vector<Message> records = RecordsIn(buffered.sent);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_FALSE(records[0].envelope.replicate_request().has_outer_product());
  EXPECT_EQ(records[0].frames[0].size(), kElements * sizeof(float));
  EXPECT_EQ(buffered.replica(2).content()->version(), Version(1));
  EXPECT_EQ(buffered.Digest(1), buffered.Digest(0));
  EXPECT_EQ(buffered.Digest(2), buffered.Digest(0));
}

TEST_F(ChainOfMatrix, ARecordThatIsKeptForItsSuccessorIsNotInLentMemory) {
  FrameLender lender;
  chain.lose = [](const Message& message) { return message.envelope.has_replicate_request(); };
  chain.Deliver(0, lender.Lend(InFactors(maker.ClientPush(1, {}), Integers(3))));
  EXPECT_EQ(lender.out(), 0u);
  chain.lose = [](const Message&) { return false; };
  chain.Pass(absl::Seconds(2));
  EXPECT_EQ(chain.replica(2).content()->version(), Version(1));
  EXPECT_EQ(chain.Digest(2), chain.Digest(0));
}

TEST_F(ChainOfMatrix, RecordsThatLieChangeNothing) {
  ASSERT_TRUE(StatusOf(chain.Ask(0, InFactors(maker.ClientPush(1, {}), Integers(1)))).ok());
  const uint64_t before = chain.Digest(1);
  EXPECT_NE(before, 0u);
  chain.sent.clear();
  chain.lose = [](const Message& message) { return message.envelope.has_replicate_request(); };
  chain.Deliver(0, InFactors(maker.ClientPush(2, {}), Integers(3)));
  ASSERT_EQ(chain.sent.size(), 1u);
  const Message good = chain.sent[0];
  std::vector<Message> bad(5, good);
  const auto factors = [&](size_t i) {
    return bad[i].envelope.mutable_replicate_request()->mutable_outer_product();
  };
  factors(0)->set_terms(0);
  factors(1)->set_terms(3);
  factors(2)->set_terms(~uint32_t{0});
  bad[3].envelope.mutable_replicate_request()->clear_outer_product();
  bad[4].envelope.mutable_replicate_request()->set_format(static_cast<proto::WireFormat>(99));
  for (const Message& message : bad) chain.Inject(1, message);
  EXPECT_EQ(chain.Digest(1), before);
  EXPECT_EQ(chain.actor(1).counters().malformed, bad.size());
  chain.Inject(1, good);
  EXPECT_EQ(chain.Digest(1), chain.Digest(0));
}

}  // namespace
}  // namespace covey::server
