// SPDX-License-Identifier: Apache-2.0

// Calls every public method of a worker that sends a request to the scheduler, against a real one.
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/parameter_client.h"
#include "common/runtime/event_loop.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/api/cluster.h"
#include "worker/data/step_numbers.h"
#include "worker/data_source.h"
#include "worker/engine/worker_core.h"
#include "worker/hybrid_step.h"
#include "worker/worker.h"

namespace covey::worker {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(20);

class WorkerTest : public ::testing::Test {
 protected:
  WorkerConfig Config() const {
    WorkerConfig config;
    config.cluster.scheduler = cluster_.scheduler();
    config.cluster.operation_deadline = kPatience;
    config.form_deadline = kPatience;
    return config;
  }
  std::unique_ptr<Worker> Join() {
    auto worker = Worker::Join(Config());
    EXPECT_TRUE(worker.ok()) << worker.status();
    return *std::move(worker);
  }

  static HybridStep::Tensor TensorOf(std::vector<float>& values, std::vector<float>& gradient) {
    HybridStep::Tensor tensor{.values = values, .gradient = gradient};
    tensor.table.set_name("w");
    tensor.table.set_data_type(proto::FLOAT32);
    tensor.table.add_shape(values.size());
    tensor.table.mutable_learning_rate()->set_base(1);
    tensor.table.mutable_contract()->set_kind(proto::Contract::ASYNC);
    return tensor;
  }

  const Cluster cluster_{{.groups = 1}};
  const std::unique_ptr<Worker> worker_ = Join();
};

TEST_F(WorkerTest, JoinsAGroup) {
  EXPECT_EQ(worker_->rank(), 0u);
  EXPECT_EQ(worker_->size(), 1u);
  EXPECT_EQ(worker_->groups(), 1u);
  EXPECT_EQ(worker_->initial_groups(), 1u);
  EXPECT_EQ(worker_->group().size(), 1u);
  EXPECT_TRUE(worker_->group().Refresh().ok());
}

TEST_F(WorkerTest, SaysWhyItCannotJoin) {
  WorkerConfig config = Config();
  config.cluster.job = "another";
  const absl::Status status = Worker::Join(config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'default'"));
}

TEST_F(WorkerTest, MeetsTheOthersAtABarrier) {
  EXPECT_TRUE(worker_->Barrier("epoch", kPatience).ok());
  EXPECT_TRUE(worker_->Barrier("epoch", kPatience).ok());
}

TEST_F(WorkerTest, CombinesElementsOfOtherTypes) {
  std::vector<double> doubles = {1, 2};
  std::vector<int64_t> integers = {3};
  std::vector<uint8_t> bytes = {4, 5, 6};
  EXPECT_TRUE(worker_->group().AllReduce(doubles, {.op = ReduceOp::kMin}).Wait().ok());
  EXPECT_TRUE(worker_->group().ReduceScatter(integers).Wait().ok());
  EXPECT_TRUE(worker_->group().Broadcast(bytes, 0).Wait().ok());
  EXPECT_TRUE(worker_->group().AllGather(bytes).Wait().ok());
  EXPECT_EQ(doubles, (std::vector<double>{1, 2}));
  EXPECT_EQ(bytes, (std::vector<uint8_t>{4, 5, 6}));
}

TEST_F(WorkerTest, KeepsTheInputOfAReduction) {
  const std::vector<double> input = {1, 2};
  std::vector<double> sum(2);
  std::vector<double> part(2);
  Group& group = worker_->group();
  EXPECT_TRUE(group.AllReduce(sum, {.input = input.data()}).Wait().ok());
  EXPECT_TRUE(group.ReduceScatter(part, {}, {.input = input.data()}).Wait().ok());
  EXPECT_EQ(sum, input);
  EXPECT_EQ(part, input);
}

TEST_F(WorkerTest, SaysWhichElementsItCannotCombine) {
  Group& group = worker_->group();
  std::vector<uint8_t> bytes(16);
  std::vector<float> floats(2);
  const auto expect_refused = [](const Handle& handle, const char* why) {
    const absl::Status status = handle.Wait();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  };
  expect_refused(group.AllReduce(bytes), "all-reduce of bytes, which have no sum");
  expect_refused(group.AllReduce(ElementSpan(ElementType::kFloat64, bytes.data() + 4, 1)),
                 "float64 at an address that is no multiple of 8");
  expect_refused(group.Broadcast(bytes, 0, {.format = WireFormat::kFloat16}),
                 "broadcast of byte in the format float16");
  expect_refused(
      group.AllReduce(floats, {.format = WireFormat::kBfloat16, .op = ReduceOp::kProduct}),
      "which is for sums and copies of float32");
  expect_refused(group.AllGather(floats, {}, {.format = WireFormat::kTopBlock}),
                 "all-gather in the format topk, which leaves out most elements");
  std::vector<float> overlapping(3);
  expect_refused(group.AllReduce(std::span(overlapping).first(2), {.input = &overlapping[1]}),
                 "an input that overlaps the output");
  expect_refused(group.Broadcast(floats, 0, {.input = bytes.data()}),
                 "broadcast with an input of its own");
  expect_refused(group.AllReduce(std::vector{std::span(floats)}, {.input = bytes.data()}),
                 "all-reduce of several tensors with an input of its own");
}

TEST_F(WorkerTest, CreatesItsTablesAndMakesAStep) {
  std::vector<float> values(4);
  std::vector<float> gradient(4, 1);
  auto hybrid = HybridStep::Create(*worker_, {TensorOf(values, gradient)});
  ASSERT_TRUE(hybrid.ok()) << hybrid.status();
  EXPECT_TRUE((*hybrid)->Wait(0).ok());
  EXPECT_TRUE((*hybrid)->Begin(1).ok());
  EXPECT_TRUE((*hybrid)->Submit(0).ok());
  EXPECT_TRUE((*hybrid)->Finish().ok());
  EXPECT_EQ(values, std::vector<float>(4, -1));
  EXPECT_EQ(worker_->core().steps().Of(1), Step(1)) << "for the account of its training data";
}

TEST_F(WorkerTest, TakesStepsThatLag) {
  std::vector<float> values = {7, 7};
  std::vector<float> gradient = {1, 2};
  auto hybrid = HybridStep::Create(*worker_, {TensorOf(values, gradient)}, {.lag = 1});
  ASSERT_TRUE(hybrid.ok()) << hybrid.status();
  EXPECT_EQ(values, (std::vector<float>{0, 0}));
  const std::vector<std::vector<float>> of_the_step_before = {{0, 0}, {-1, -2}};
  for (const std::vector<float>& expected : of_the_step_before) {
    ASSERT_TRUE((*hybrid)->Begin(1).ok());
    ASSERT_TRUE((*hybrid)->Submit(0).ok());
    ASSERT_TRUE((*hybrid)->Wait(0).ok());
    EXPECT_EQ(values, expected);
  }
  ASSERT_TRUE((*hybrid)->Finish().ok());
  EXPECT_EQ(values, (std::vector<float>{-2, -4}));
  ASSERT_TRUE((*hybrid)->Refresh().ok());
  EXPECT_EQ(values, (std::vector<float>{-2, -4}));
}

TEST_F(WorkerTest, SubmitsGradientsFromAnyPlace) {
  std::vector<float> values(4);
  std::vector<float> none;
  auto hybrid = HybridStep::Create(*worker_, {TensorOf(values, none)});
  ASSERT_TRUE(hybrid.ok()) << hybrid.status();
  ASSERT_TRUE((*hybrid)->Begin(1).ok());
  const absl::Status nowhere = (*hybrid)->Submit(0);
  EXPECT_EQ(nowhere.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(nowhere.message()), HasSubstr("0 elements"));
  const std::vector<float> gradient(4, 2);
  EXPECT_EQ((*hybrid)->Submit(0, std::span(gradient).first(3)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE((*hybrid)->Submit(0, gradient).ok());
  EXPECT_TRUE((*hybrid)->Finish().ok());
  EXPECT_EQ(values, std::vector<float>(4, -2));
}

TEST_F(WorkerTest, WaitsInSlices) {
  constexpr size_t kElements = 1 << 20;  // so that a step takes a while
  std::vector<float> values(kElements);
  std::vector<float> gradient(kElements, 1);
  auto hybrid = HybridStep::Create(*worker_, {TensorOf(values, gradient)});
  ASSERT_TRUE(hybrid.ok()) << hybrid.status();
  int early = 0;
  for (int step = 0; step < 20; ++step) {
    ASSERT_TRUE((*hybrid)->Begin(1).ok());
    ASSERT_TRUE((*hybrid)->Submit(0).ok());
    const absl::Status status = (*hybrid)->WaitFor(0, absl::Nanoseconds(1));
    if (!status.ok()) {
      ASSERT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
      ++early;
      ASSERT_TRUE((*hybrid)->Begin(1).ok());
      ASSERT_FALSE((*hybrid)->Submit(0).ok()) << "the step before has not been waited for";
      ASSERT_TRUE((*hybrid)->Wait(0).ok());
      ASSERT_TRUE((*hybrid)->Submit(0).ok());
    }
    ASSERT_TRUE((*hybrid)->Wait(0).ok());
    ASSERT_FALSE((*hybrid)->in_flight(0));
    ASSERT_EQ(values, std::vector<float>(kElements, static_cast<float>(-(step + 1 + early))));
  }
  EXPECT_GT(early, 0) << "a nanosecond is too short for most steps";
}

TEST_F(WorkerTest, LearnsWhereTheTimeOfAStepGoes) {
  std::vector<float> values(4);
  std::vector<float> gradient(4, 1);
  auto hybrid = HybridStep::Create(*worker_, {TensorOf(values, gradient)});
  ASSERT_TRUE(hybrid.ok()) << hybrid.status();
  for (int step = 0; step < 50; ++step) {
    { const HybridStep::InputTime input(**hybrid); }
    ASSERT_TRUE((*hybrid)->Begin(1).ok());
    ASSERT_TRUE((*hybrid)->Submit(0).ok());
    ASSERT_TRUE((*hybrid)->Wait(0).ok());
    (*hybrid)->Report(1.0);
  }
  const auto progress = (*hybrid)->progress();
  ASSERT_TRUE(progress.ok()) << progress.status();
  const client::StepTimes& times = progress->step_times;
  EXPECT_GT(times.computation, 0);
  EXPECT_GT(times.input, 0);
  EXPECT_GT(times.servers, 0);
  EXPECT_EQ(times.group, 0) << "it is alone in its group";
}

TEST_F(WorkerTest, TakesItsWorkFromTheScheduler) {
  auto source = DataSource::Open(*worker_, {.name = "digits", .examples = 4, .item_examples = 2});
  ASSERT_TRUE(source.ok()) << source.status();
  size_t taken = 0;
  while (taken < 4) {
    const auto batch = (*source)->Take(4);
    ASSERT_TRUE(batch.ok()) << batch.status();
    taken += batch->size();
  }
  EXPECT_EQ(taken, 4u);
  (*source)->Finish(0);
  while (!(*source)->done()) ASSERT_TRUE((*source)->Take(1).ok());
  EXPECT_EQ((*source)->examples_finished(), 4u);
}

TEST_F(WorkerTest, AsksToBeLetGo) {
  EXPECT_TRUE(worker_->RequestDrain().ok());
  auto client = client::ParameterClient::Connect({.scheduler = cluster_.scheduler()});
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::Time until = MonotonicNow() + kPatience;
  bool draining = false;
  while (!draining && MonotonicNow() < until) {
    const auto status = (*client)->GetStatus();
    ASSERT_TRUE(status.ok()) << status.status();
    for (const proto::Node& node : status->view().nodes()) draining = draining || node.draining();
  }
  EXPECT_TRUE(draining);
}

}  // namespace
}  // namespace covey::worker
