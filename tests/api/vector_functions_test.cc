// SPDX-License-Identifier: Apache-2.0

// Functions and queries of tables of vectors, through the public interface and real sockets.

#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "client/parameter_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/table.pb.h"
#include "tests/api/cluster.h"
#include "worker/examples/lbfgs/problem.h"
#include "worker/examples/lbfgs/server_minimizer.h"
#include "worker/examples/lbfgs/single_process.h"

namespace covey::client {
namespace {

using lbfgs::LogisticProblem;
using lbfgs::Minimum;
using lbfgs::ProblemSize;
using lbfgs::ServerMinimizer;
using lbfgs::Settings;
using ::testing::HasSubstr;
using Function = VectorFunction::Kind;
using Query = VectorQuery::Kind;

constexpr absl::Duration kPatience = absl::Seconds(20);
constexpr size_t kElements = 48;

// In three shards of sixteen, with three vectors besides the values.
proto::TableSpec Spec(const std::string& name) {
  proto::TableSpec spec;
  spec.set_name(name);
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(kElements);
  spec.set_shard_bytes(64);
  spec.mutable_optimizer()->set_kind(proto::Optimizer::VECTORS);
  spec.mutable_optimizer()->set_vectors(3);
  spec.mutable_learning_rate()->set_base(1);
  spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
  return spec;
}

class VectorFunctionsTest : public ::testing::Test {
 protected:
  std::unique_ptr<ParameterClient> Connect() {
    auto client = ParameterClient::Connect(
        {.scheduler = cluster_.scheduler(), .operation_deadline = kPatience});
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  std::vector<VectorAnswer> Ask(const Table& table, std::vector<VectorQuery> queries) {
    const Handle handle = client_->Ask(table, std::move(queries));
    EXPECT_TRUE(handle.Wait().ok()) << handle.result().status;
    return handle.result().answers;
  }

  const Cluster cluster_{{}};
  const std::unique_ptr<ParameterClient> client_ = Connect();
};

TEST_F(VectorFunctionsTest, ServersComputeWithVectorsOfSeveralShards) {
  const Table table = client_->CreateTable(Spec("v")).value();
  EXPECT_EQ(table.vectors, 4u);
  EXPECT_EQ(table.slots, 0u);
  std::vector<float> gradient(kElements);
  for (size_t i = 0; i < kElements; ++i) gradient[i] = static_cast<float>(i) - 10;
  ASSERT_TRUE(client_->Push(table, gradient).Wait().ok());
  const Handle call = client_->Call(table, {{.kind = Function::kCopy, .target = 2, .source = 1},
                                            {.kind = Function::kScale, .target = 2, .scalar = 2},
                                            {.kind = Function::kSet, .target = 3, .scalar = 1},
                                            {.kind = Function::kAxpy, .source = 2, .scalar = -1}});
  ASSERT_TRUE(call.Wait().ok()) << call.result().status;
  EXPECT_EQ(call.result().version, Version(2));
  EXPECT_TRUE(call.result().durable);
  std::vector<float> values(kElements);
  ASSERT_TRUE(client_->Pull(table, std::span(values)).Wait().ok());
  double square = 0;
  double sum = 0;
  for (size_t i = 0; i < kElements; ++i) {
    EXPECT_EQ(values[i], -2 * gradient[i]);
    square += gradient[i] * gradient[i];
    sum += gradient[i];
  }
  const auto answers = Ask(table, {{.kind = Query::kDot, .vector = 1, .other = 2},
                                   {.kind = Query::kNorm2, .vector = 1},
                                   {.kind = Query::kNorm1, .vector = 3},
                                   {.kind = Query::kNormMax, .vector = 0},
                                   {.kind = Query::kSum, .vector = 1},
                                   {.kind = Query::kMin, .vector = 1},
                                   {.kind = Query::kMax, .vector = 1},
                                   {.kind = Query::kNonZero, .vector = 1},
                                   {.kind = Query::kTop, .vector = 1, .count = 3}});
  ASSERT_EQ(answers.size(), 9u);
  EXPECT_EQ(answers[0].value, 2 * square);
  EXPECT_EQ(answers[1].value, std::sqrt(square));
  EXPECT_EQ(answers[2].value, kElements);
  EXPECT_EQ(answers[3].value, 74);
  EXPECT_EQ(answers[4].value, sum);
  EXPECT_EQ(answers[5].value, -10);
  EXPECT_EQ(answers[6].value, 37);
  EXPECT_EQ(answers[7].value, kElements - 1);
  EXPECT_EQ(answers[8].top, (std::vector<TopElement>{{47, 37}, {46, 36}, {45, 35}}));
}

TEST_F(VectorFunctionsTest, AnotherClientSeesThem) {
  const Table table = client_->CreateTable(Spec("v")).value();
  const auto other = Connect();
  ASSERT_TRUE(
      client_->Call(table, {{.kind = Function::kSet, .target = 2, .scalar = 5}}).Wait().ok());
  const Handle handle =
      other->Ask(other->FindTable("v").value(), {{.kind = Query::kSum, .vector = 2}});
  ASSERT_TRUE(handle.Wait().ok());
  EXPECT_EQ(handle.result().answers.at(0).value, 5 * kElements);
}

TEST_F(VectorFunctionsTest, WhatHasNoMeaningIsRefusedByName) {
  const Table table = client_->CreateTable(Spec("v")).value();
  proto::TableSpec plain = Spec("w");
  plain.clear_optimizer();
  const Table other = client_->CreateTable(plain).value();
  const std::vector<VectorFunction> set = {{.kind = Function::kSet, .target = 1, .scalar = 1}};
  const auto message = [](const Handle& handle) { return std::string(handle.Wait().message()); };
  EXPECT_THAT(message(client_->Call(other, set)), HasSubstr("table 'w': the table is not one of"));
  EXPECT_THAT(message(client_->Ask(other, {{}})), HasSubstr("table 'w': the table is not one of"));
  EXPECT_THAT(message(client_->Call(table, {{.kind = Function::kSet, .target = 4}})),
              HasSubstr("vector 4 is none of the table's 4"));
  EXPECT_THAT(message(client_->Ask(table, {})), HasSubstr("has 0 queries"));
  // What the client does not see, the server does.
  Table renamed = other;
  renamed.vectors = 4;
  EXPECT_THAT(message(client_->Call(renamed, set)), HasSubstr("table=w shard="));
  const Handle asked = client_->Ask(renamed, {{}});
  EXPECT_EQ(asked.Wait().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(VectorFunctionsTest, BytesDoNotFollowTheNumberOfElements) {
  proto::TableSpec large = Spec("large");
  large.set_shape(0, 3 << 20);
  large.set_shard_bytes(4 << 20);
  std::vector<uint64_t> bytes;
  for (const proto::TableSpec& spec : {Spec("small"), large}) {
    const Table table = client_->CreateTable(spec).value();
    const Counters before = client_->GetCounters().value();
    ASSERT_TRUE(client_->Call(table, {{.kind = Function::kSet, .target = 1}}).Wait().ok());
    Ask(table, {{.kind = Query::kNorm2, .vector = 1}});
    const Counters after = client_->GetCounters().value();
    bytes.push_back(after.bytes_sent + after.bytes_received - before.bytes_sent -
                    before.bytes_received);
  }
  EXPECT_GT(bytes[0], 6 * 40u);  // three shards, two requests
  // The large vectors have 12 MiB. A busy machine may send a request again.
  EXPECT_LT(bytes[1], 10 * bytes[0]);
}

// The example's minimizer, with one worker, who is this test.
TEST_F(VectorFunctionsTest, LbfgsOnServersIsThatOfOneProcess) {
  const ProblemSize size{.features = 500, .samples = 2000};
  const Settings settings{.history = 5, .iterations = 60, .tolerance = 1e-6};
  proto::TableSpec spec = ServerMinimizer::SpecOf(size.features, settings);
  spec.set_name("lbfgs");
  spec.set_shard_bytes(1024);
  const Table table = client_->CreateTable(spec).value();
  const auto worker = Connect();
  const LogisticProblem problem(size, 1, {.first = 0, .count = size.samples});
  const auto evaluate = [&]() -> absl::StatusOr<double> {
    std::vector<float> values(size.features);
    const absl::Status pulled = worker->Pull(table, std::span(values)).Wait();
    if (!pulled.ok()) return pulled;
    const std::vector<double> weights(values.begin(), values.end());
    std::vector<double> sums(size.features);
    const double loss = problem.AddGradient(weights, sums);
    const std::vector<float> gradient(sums.begin(), sums.end());
    const absl::Status pushed = worker->Push(table, gradient).Wait();
    if (!pushed.ok()) return pushed;
    return loss;
  };
  ServerMinimizer minimizer(*client_, table, settings, size.samples);
  ASSERT_TRUE(minimizer.Begin(evaluate).ok());
  for (bool goes_on = true; goes_on;) {
    const absl::StatusOr<bool> step = minimizer.Step(evaluate);
    ASSERT_TRUE(step.ok()) << step.status();
    goes_on = *step;
    // Two shards.
    if (goes_on) {
      EXPECT_LT(minimizer.iteration().bytes, 10'000u);
    }
  }
  const Minimum expected = lbfgs::MinimizeHere(problem, size, settings);
  EXPECT_GT(minimizer.iterations(), 10u);
  EXPECT_NEAR(minimizer.iteration().objective, expected.objective, 1e-6 * expected.objective);
  std::vector<float> weights(size.features);
  ASSERT_TRUE(client_->Pull(table, std::span(weights)).Wait().ok());
  for (size_t i = 0; i < size.features; ++i) EXPECT_NEAR(weights[i], expected.weights[i], 1e-4);
}

}  // namespace
}  // namespace covey::client
