// SPDX-License-Identifier: Apache-2.0

// Rounds of rows behind real sockets: workers, each a group of its own, and one server.
#include "worker/local_rows.h"

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/parameter_client.h"
#include "common/base/clock.h"
#include "common/optimizer/row_optimizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/table.pb.h"
#include "tests/api/cluster.h"
#include "worker/worker.h"

namespace covey::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Floats = std::vector<float>;
using Keys = std::vector<uint64_t>;

constexpr absl::Duration kPatience = absl::Seconds(20);

WorkerConfig ConfigOf(const Cluster& cluster) {
  WorkerConfig config;
  config.cluster.scheduler = cluster.scheduler();
  config.cluster.operation_deadline = kPatience;
  config.form_deadline = kPatience;
  return config;
}

proto::TableSpec Spec(uint64_t local_steps, proto::Optimizer::Kind inner = proto::Optimizer::SGD) {
  proto::TableSpec spec;
  spec.set_name("rows");
  spec.set_data_type(proto::FLOAT32);
  spec.mutable_sparse()->set_width(2);
  spec.mutable_contract()->set_kind(proto::Contract::LOCAL);
  spec.mutable_contract()->set_local_steps(local_steps);
  spec.mutable_inner_optimizer()->set_kind(inner);
  spec.mutable_inner_learning_rate()->set_base(0.5);
  return spec;
}

std::unique_ptr<LocalRows> Open(Worker& worker, const proto::TableSpec& spec,
                                const LocalRows::Options& options = {}) {
  auto rows = LocalRows::Open(worker, spec, options);
  EXPECT_TRUE(rows.ok()) << rows.status();
  return *std::move(rows);
}

// A step that adds `gradient` to the sum of each element of the keys; returns their rows before.
Floats Step(LocalRows& rows, const Keys& keys, float gradient, uint64_t samples = 1) {
  Floats values(keys.size() * 2);
  EXPECT_TRUE(rows.Pull(keys, values).ok());
  EXPECT_TRUE(rows.Step(Floats(values.size(), gradient), samples).ok());
  return values;
}

Floats OnServers(const Cluster& cluster, const Keys& keys) {
  client::ClientConfig config;
  config.scheduler = cluster.scheduler();
  const auto client = client::ParameterClient::Connect(config);
  EXPECT_TRUE(client.ok()) << client.status();
  const auto table = (*client)->FindTable("rows");
  client::RowBatch batch;
  Floats values(keys.size() * 2);
  EXPECT_TRUE(batch.Assign(*table, keys).ok());
  EXPECT_TRUE((*client)->Pull(*table, batch, std::span(values)).Wait().ok());
  return values;
}

// Each in a thread and a group of its own.
void RunWorkers(const Cluster& cluster, const std::vector<std::function<void(Worker&)>>& programs) {
  std::vector<std::thread> threads;
  threads.reserve(programs.size());
  for (const auto& program : programs) {
    threads.emplace_back([&cluster, &program] {
      const auto worker = Worker::Join(ConfigOf(cluster));
      ASSERT_TRUE(worker.ok()) << worker.status();
      program(**worker);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(LocalRows, PushesOncePerRoundAndReadsEachRowOnce) {
  const Cluster cluster({.groups = 1});
  RunWorkers(
      cluster, {[&](Worker& worker) {
        const auto rows = Open(worker, Spec(3));
        EXPECT_EQ(rows->width(), 2u);
        EXPECT_THAT(Step(*rows, {5, 3, 5}, 1), ElementsAre(0, 0, 0, 0, 0, 0));
        // The key that repeats has both gradients.
        EXPECT_THAT(Step(*rows, {3, 5}, 1, 2), ElementsAre(-0.5, -0.5, -1, -1));
        EXPECT_EQ(rows->round(), 1u);
        EXPECT_THAT(OnServers(cluster, {3, 5}), ElementsAre(0, 0, 0, 0));
        // A step without examples counts.
        EXPECT_TRUE(rows->Step({}, 0).ok());
        EXPECT_EQ(rows->round(), 2u);
        EXPECT_THAT(Step(*rows, {3, 5, 9}, 1), ElementsAre(-0.75, -0.75, -1.25, -1.25, 0, 0));
        EXPECT_THAT(OnServers(cluster, {3, 5, 9}), ElementsAre(-0.75, -0.75, -1.25, -1.25, 0, 0));
        ASSERT_TRUE(rows->Finish().ok());
        ASSERT_TRUE(rows->Finish().ok());
        EXPECT_EQ(rows->round(), 3u);
        EXPECT_THAT(OnServers(cluster, {3, 5, 9}),
                    ElementsAre(-1.25, -1.25, -1.75, -1.75, -0.5, -0.5));
      }});
}

// With rounds of one step and the default outer optimizer, one group trains as the inner optimizer.
TEST(LocalRows, RoundsOfOneStepAreTheInnerOptimizer) {
  for (const auto& [kind, ours] : {std::pair(proto::Optimizer::SGD, OptimizerKind::kSgd),
                                   std::pair(proto::Optimizer::ADAGRAD, OptimizerKind::kAdagrad),
                                   std::pair(proto::Optimizer::ADAM, OptimizerKind::kAdam)}) {
    const Cluster cluster({.groups = 1});
    RunWorkers(cluster, {[&, kind = kind, ours = ours](Worker& worker) {
                 const auto rows = Open(worker, Spec(1, kind));
                 const auto optimizer = RowOptimizer::Create({.kind = ours}, 2);
                 Floats expected = {0, 0};
                 Floats slots[2] = {{0, 0}, {0, 0}};
                 for (uint32_t step = 1; step <= 20; ++step) {
                   Floats values(4);
                   ASSERT_TRUE(rows->Pull(Keys{8, step + 100}, values).ok());
                   ASSERT_NEAR(values[0], expected[0], 1e-6) << step;
                   ASSERT_NEAR(values[1], expected[1], 1e-6) << step;
                   const Floats gradient = {0.3f * static_cast<float>(step % 5) - 1, 2, 1, 1};
                   ASSERT_TRUE(rows->Step(gradient, 4).ok());
                   const RowUpdate update = {.gradient_sum = gradient.data(),
                                             .values = expected.data(),
                                             .slots = {slots[0].data(), slots[1].data()}};
                   (*optimizer)
                       ->Apply({.learning_rate = 0.5, .gradient_scale = 0.25}, {&update, 1},
                               {&step, 1});
                 }
               }});
  }
}

// In two groups, of one and of five examples, which share a row.
Floats TrainedWith(proto::SparseRows::RoundMean mean) {
  const Cluster cluster({.groups = 2});
  const auto train = [mean](const Keys& keys, uint64_t samples) {
    return [keys, samples, mean](Worker& worker) {
      proto::TableSpec spec = Spec(2);
      spec.mutable_sparse()->set_round_mean(mean);
      const auto rows = Open(worker, spec);
      // Each step moves by 0.5.
      for (int step = 0; step < 4; ++step) {
        Step(*rows, keys, static_cast<float>(samples), samples);
      }
      // The round has become an update once the rows are there.
      Floats values(2);
      EXPECT_TRUE(rows->Pull(Keys{keys[0]}, values).ok());
      ASSERT_TRUE(rows->Finish().ok());
    };
  };
  RunWorkers(cluster, {train({1, 2}, 1), train({2, 3}, 5)});
  return OnServers(cluster, {1, 2, 3, 4});
}

TEST(LocalRows, ARowIsTheMeanOfAllGroupsOrOfThoseThatTouchedIt) {
  EXPECT_THAT(
      TrainedWith(proto::SparseRows::OF_ALL_PUSHES),
      Pointwise(FloatNear(1e-6f), {-2. / 6, -2. / 6, -2., -2., -10. / 6, -10. / 6, 0., 0.}));
  EXPECT_THAT(TrainedWith(proto::SparseRows::OF_HOLDERS),
              ElementsAre(-2, -2, -2, -2, -2, -2, 0, 0));
}

TEST(LocalRows, RoundsOfEightStepsSendAnEighthOfTheBytes) {
  double bytes[2];
  for (const uint64_t local_steps : {uint64_t{1}, uint64_t{8}}) {
    const Cluster cluster({.groups = 1});
    RunWorkers(cluster, {[&](Worker& worker) {
                 const auto rows = Open(worker, Spec(local_steps));
                 Keys keys;
                 for (uint64_t key = 0; key < 5000; ++key) keys.push_back(key * 977);
                 for (int step = 0; step < 16; ++step) Step(*rows, keys, 1);
                 ASSERT_TRUE(rows->Finish().ok());
                 // The keys go once in either case.
                 const auto counters = rows->GetCounters();
                 bytes[local_steps / 8] =
                     static_cast<double>(counters->bytes_sent - counters->key_bytes);
               }});
  }
  // Of 5000 rows of two floats in each step.
  EXPECT_GT(bytes[0], sizeof(float) * 2 * 5000 * 16);
  EXPECT_NEAR(bytes[1] / bytes[0], 1.0 / 8, 0.005);
}

constexpr absl::Duration kShort = absl::Milliseconds(1);

void ExpectInFlight(const absl::Status& status, const LocalRows& rows) {
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_TRUE(rows.in_flight());
}

// The other worker takes its steps when this one has seen that it waits for them.
TEST(LocalRows, AWaitThatEndsGoesOnInTheNextCall) {
  const Cluster cluster({.groups = 2});
  std::promise<void> has_waited;
  const auto waits = [&](Worker& worker) {
    const auto rows = Open(worker, Spec(2));
    Step(*rows, {1, 2}, 1);
    Step(*rows, {1, 2}, 1);
    EXPECT_TRUE(rows->Finish().ok());
    EXPECT_FALSE(rows->in_flight());
    Floats values(4);
    const uint64_t before = rows->GetCounters()->bytes_sent;
    ExpectInFlight(rows->Pull(Keys{1, 2}, values, kShort), *rows);
    const uint64_t of_one = rows->GetCounters()->bytes_sent - before;
    for (int call = 0; call < 50; ++call) {
      ExpectInFlight(rows->Pull(Keys{1, 2}, values, kShort), *rows);
    }
    ExpectInFlight(rows->Pull(Keys{2, 3}, values, kShort), *rows);
    // The engine may have sent the read again, and the calls have not.
    EXPECT_LT(rows->GetCounters()->bytes_sent - before, 20 * of_one);
    // A step in the new round, whose end waits for the rows that are read for it.
    EXPECT_TRUE(rows->Step({}, 0, kShort).ok());
    ExpectInFlight(rows->Step({}, 0, kShort), *rows);
    ExpectInFlight(rows->Finish(kShort), *rows);
    EXPECT_EQ(rows->round(), 2u);
    has_waited.set_value();
    EXPECT_TRUE(rows->Pull(Keys{2, 3}, values).ok());
    EXPECT_FALSE(rows->in_flight());
    EXPECT_THAT(values, ElementsAre(-1, -1, 0, 0));
    EXPECT_TRUE(rows->Step(Floats(4, 1), 1).ok());
    EXPECT_TRUE(rows->Finish().ok());
    EXPECT_EQ(rows->round(), 3u);
  };
  const auto follows = [&](Worker& worker) {
    const auto rows = Open(worker, Spec(2));
    has_waited.get_future().wait();
    for (int step = 0; step < 4; ++step) EXPECT_TRUE(rows->Step({}, 0).ok());
    Floats values(2);
    EXPECT_TRUE(rows->Pull(Keys{3}, values).ok());
    EXPECT_THAT(values, ElementsAre(-0.5, -0.5));
  };
  RunWorkers(cluster, {waits, follows});
}

// The other worker takes no step.
TEST(LocalRows, ClosesWithAReadInFlight) {
  const Cluster cluster({.groups = 2});
  std::promise<void> has_closed;
  const auto waits = [&](Worker& worker) {
    auto rows = Open(worker, Spec(1));
    Step(*rows, {1, 2}, 1);
    EXPECT_TRUE(rows->Finish().ok());
    Floats values(4);
    ExpectInFlight(rows->Pull(Keys{1, 2}, values, kShort), *rows);
    const absl::Time begin = MonotonicNow();
    rows = nullptr;
    EXPECT_LT(MonotonicNow() - begin, kPatience / 2);
    has_closed.set_value();
  };
  RunWorkers(cluster, {waits, [&](Worker&) { has_closed.get_future().wait(); }});
}

TEST(LocalRows, SaysWhatIsWrong) {
  const Cluster cluster({.groups = 1});
  RunWorkers(cluster, {[&](Worker& worker) {
               const auto expect = [](const absl::Status& status, absl::StatusCode code,
                                      const std::string& why) {
                 EXPECT_EQ(status.code(), code) << status;
                 EXPECT_THAT(std::string(status.message()), HasSubstr(why));
               };
               proto::TableSpec async = Spec(2);
               async.mutable_contract()->set_kind(proto::Contract::ASYNC);
               async.clear_inner_optimizer();
               async.clear_inner_learning_rate();
               async.mutable_learning_rate()->set_base(1);
               expect(LocalRows::Open(worker, async, {}).status(),
                      absl::StatusCode::kInvalidArgument,
                      "rounds of rows need a sparse table under local:H");
               expect(LocalRows::Open(worker, Spec(2), {.rows_max = 0}).status(),
                      absl::StatusCode::kInvalidArgument, "rows_max is 0");
               const auto rows = Open(worker, Spec(2), {.rows_max = 3});
               Floats values(8);
               expect(rows->Pull(Keys{1, 2, 3, 4}, values), absl::StatusCode::kInvalidArgument,
                      "3 is the most (rows_max)");
               expect(rows->Pull(Keys{1, 2, 3}, values), absl::StatusCode::kInvalidArgument,
                      "pull of 3 keys into 8 elements");
               expect(rows->Step(Floats(2), 1), absl::StatusCode::kInvalidArgument,
                      "step with 2 elements after a pull of 0 keys");
               // It goes on.
               EXPECT_THAT(Step(*rows, {1, 2, 3, 3}, 1), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0));
             }});
}

TEST(LocalRows, AGroupOfSeveralIsRefused) {
  const Cluster cluster({.groups = 1, .workers_per_group = 2});
  const auto refused = [](Worker& worker) {
    const absl::Status status = LocalRows::Open(worker, Spec(2), {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("start as many groups as workers"));
  };
  RunWorkers(cluster, {refused, refused});
}

}  // namespace
}  // namespace covey::worker
