// SPDX-License-Identifier: Apache-2.0
#include "worker/data_source.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "proto/scheduler_service.grpc.pb.h"
#include "worker/data/local_work_queue.h"
#include "worker/data/step_numbers.h"
#include "worker/engine/worker_core.h"
#include "worker/hybrid_step.h"
#include "worker/worker.h"

namespace covey::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kWorkerNode = 2;
constexpr absl::Duration kPatience = absl::Seconds(30);

// A scheduler of one worker, which is a group; `get_work` answers requests for work.
class FakeScheduler : public proto::Scheduler::Service {
 public:
  using GetWorkOf = std::function<grpc::Status(const proto::WorkRequest&, proto::WorkReply&)>;

  explicit FakeScheduler(GetWorkOf get_work) : get_work_(std::move(get_work)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeScheduler() override { server_->Shutdown(gpr_time_0(GPR_CLOCK_MONOTONIC)); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  grpc::Status Register(grpc::ServerContext*, const proto::RegisterRequest* request,
                        proto::RegisterReply* reply) override {
    reply->set_node(kWorkerNode);
    reply->set_heartbeat_ms(100);
    proto::ClusterView& view = *reply->mutable_view();
    view.set_epoch(1);
    view.set_job_name(request->job_name());
    proto::Node& node = *view.add_nodes();
    node.set_id(kWorkerNode);
    node.set_role(proto::WORKER);
    node.set_name("worker-0");
    node.set_state(proto::Node::ALIVE);
    *node.mutable_endpoints() = request->endpoints();
    proto::Group& group = *view.add_groups();
    group.set_id(1);
    group.set_generation(1);
    group.add_members(kWorkerNode);
    group.set_state(proto::Group::ACTIVE);
    return grpc::Status::OK;
  }
  grpc::Status Heartbeat(grpc::ServerContext*, const proto::HeartbeatRequest*,
                         proto::HeartbeatReply* reply) override {
    reply->set_epoch(1);
    return grpc::Status::OK;
  }
  grpc::Status Leave(grpc::ServerContext*, const proto::LeaveRequest*,
                     proto::LeaveReply*) override {
    return grpc::Status::OK;
  }
  // Of a group of one.
  grpc::Status Barrier(grpc::ServerContext*, const proto::BarrierRequest* request,
                       proto::BarrierReply*) override {
    MutexLock lock(mutex_);
    barriers_.push_back(request->name());
    return grpc::Status::OK;
  }
  std::vector<std::string> barriers() {
    MutexLock lock(mutex_);
    return barriers_;
  }
  grpc::Status GetWork(grpc::ServerContext*, const proto::WorkRequest* request,
                       proto::WorkReply* reply) override {
    MutexLock lock(mutex_);
    requests_.push_back(*request);
    const grpc::Status status = get_work_(*request, *reply);
    changed_.NotifyAll();
    return status;
  }

  // How many requests so far `fits`; and whether any does.
  int64_t Count(const std::function<bool(const proto::WorkRequest&)>& fits) {
    MutexLock lock(mutex_);
    return std::count_if(requests_.begin(), requests_.end(), fits);
  }
  bool Has(const std::function<bool(const proto::WorkRequest&)>& fits) { return Count(fits) > 0; }
  // The first request so far that `fits`; waits for one, and returns nothing when none comes.
  bool Await(const std::function<bool(const proto::WorkRequest&)>& fits) {
    MutexLock lock(mutex_);
    const absl::Time until = MonotonicNow() + kPatience;
    while (MonotonicNow() < until) {
      if (std::any_of(requests_.begin(), requests_.end(), fits)) return true;
      changed_.WaitFor(mutex_, until - MonotonicNow());
    }
    return false;
  }

 private:
  const GetWorkOf get_work_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<proto::WorkRequest> requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> barriers_ ABSL_GUARDED_BY(mutex_);
};

void AddItem(proto::WorkReply& reply, uint64_t pass, uint64_t first, uint64_t count) {
  proto::WorkItem& item = *reply.add_items();
  item.set_pass(pass);
  item.set_first(first);
  item.set_count(count);
}

uint64_t ExamplesIn(const google::protobuf::RepeatedPtrField<proto::WorkItem>& items) {
  uint64_t examples = 0;
  for (const proto::WorkItem& item : items) examples += item.count();
  return examples;
}

std::vector<uint32_t> ToVector(std::span<const uint32_t> examples) {
  return {examples.begin(), examples.end()};
}

class DataSourceTest : public ::testing::Test {
 protected:
  // Joins a cluster whose scheduler gives out work through `get_work`.
  void Join(FakeScheduler::GetWorkOf get_work) {
    scheduler_ = std::make_unique<FakeScheduler>(std::move(get_work));
    WorkerConfig config;
    config.cluster.scheduler = scheduler_->address();
    config.cluster.rank = 0;
    auto worker = Worker::Join(config);
    ASSERT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
  }
  // A scheduler that gives out the items of the data set in order, all at once if requested, and is
  // done once all are finished.
  FakeScheduler::GetWorkOf InOrder() {
    return [this](const proto::WorkRequest& request, proto::WorkReply& reply) {
      finished_ += ExamplesIn(request.finished());
      const uint64_t total = request.passes() * request.examples();
      for (uint32_t i = 0; i < request.wanted() && given_ < total; ++i) {
        const uint64_t first = given_ % request.examples();
        const uint64_t count = std::min(request.item_examples(), request.examples() - first);
        AddItem(reply, given_ / request.examples(), first, count);
        given_ += count;
      }
      reply.set_examples_finished(finished_);
      reply.set_done(finished_ == total);
      reply.set_ask_again_ms(1);
      return grpc::Status::OK;
    };
  }
  // The same for members that name their pass; a member of the group is in pass `group_pass_`.
  FakeScheduler::GetWorkOf InOrderOfPasses() {
    return [this](const proto::WorkRequest& request, proto::WorkReply& reply) {
      finished_ += ExamplesIn(request.finished());
      const uint64_t passes_finished = finished_ / request.examples();
      reply.set_passes_finished(passes_finished);
      reply.set_group_pass(
          std::max(group_pass_.load(), request.has_pass() ? request.pass() : passes_finished));
      reply.set_ask_again_ms(1);
      if (request.pass() >= request.passes()) return grpc::Status::OK;
      for (uint32_t i = 0;
           i < request.wanted() && given_ < request.examples() * (request.pass() + 1); ++i) {
        const uint64_t first = given_ % request.examples();
        const uint64_t count = std::min(request.item_examples(), request.examples() - first);
        AddItem(reply, request.pass(), first, count);
        given_ += count;
      }
      return grpc::Status::OK;
    };
  }
  // Takes examples until the pass is done, and marks them as trained.
  std::vector<uint32_t> TakeAll(DataSource& source) {
    std::vector<uint32_t> taken;
    const absl::Time until = MonotonicNow() + kPatience;
    while (!source.done() && MonotonicNow() < until) {
      const auto batch = source.Take(3);
      EXPECT_TRUE(batch.ok()) << batch.status();
      if (!batch.ok()) break;
      taken.insert(taken.end(), batch->begin(), batch->end());
      source.Finish(1);
    }
    return taken;
  }
  std::unique_ptr<DataSource> Open(const DataSource::Options& options) {
    auto source = DataSource::Open(*worker_, options);
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *std::move(source) : nullptr;
  }

  std::unique_ptr<FakeScheduler> scheduler_;
  std::unique_ptr<Worker> worker_;
  // Used by InOrder; accessed by one scheduler thread at a time.
  uint64_t given_ = 0;
  uint64_t finished_ = 0;
  std::atomic<uint64_t> group_pass_ = 0;
};

TEST_F(DataSourceTest, GivesEveryExampleOncePerPassAndIsDoneWhenAllAreFinished) {
  ASSERT_NO_FATAL_FAILURE(Join(InOrder()));
  const auto source =
      Open({.name = "set", .examples = 10, .item_examples = 4, .passes = 2, .seed = 0});
  ASSERT_NE(source, nullptr);
  std::vector<uint32_t> taken;
  const absl::Time until = MonotonicNow() + kPatience;
  while (!source->done() && MonotonicNow() < until) {
    const auto batch = source->Take(3);
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_LE(batch->size(), 3u);
    taken.insert(taken.end(), batch->begin(), batch->end());
    source->Finish(1);
  }
  EXPECT_TRUE(source->done());
  EXPECT_EQ(source->examples_finished(), 20u);
  std::vector<uint32_t> expected(10);
  std::iota(expected.begin(), expected.end(), 0);
  expected.insert(expected.end(), expected.begin(), expected.begin() + 10);
  EXPECT_EQ(taken, expected) << "without a seed: in the order of the data set";
}

TEST_F(DataSourceTest, ASeedShufflesEachPassInItsOwnWayTheSameForAll) {
  const auto orders_of = [this](uint64_t seed) {
    given_ = finished_ = 0;
    worker_.reset();
    Join(InOrder());
    const auto source =
        Open({.name = "set", .examples = 50, .item_examples = 50, .passes = 2, .seed = seed});
    std::vector<std::vector<uint32_t>> passes;
    for (int pass = 0; pass < 2; ++pass) {
      std::vector<uint32_t>& order = passes.emplace_back();
      const absl::Time until = MonotonicNow() + kPatience;
      while (order.size() < 50 && MonotonicNow() < until) {
        const auto batch = ToVector(source->Take(50 - order.size()).value());
        order.insert(order.end(), batch.begin(), batch.end());
      }
      source->Finish(0);
    }
    return passes;
  };
  const auto first = orders_of(7);
  EXPECT_NE(first[0], first[1]);
  for (const auto& order : first) EXPECT_THAT(std::set(order.begin(), order.end()), SizeIs(50));
  EXPECT_EQ(orders_of(7), first);
  EXPECT_NE(orders_of(8)[0], first[0]);
}

TEST_F(DataSourceTest, ReportsWhatIsTrainedAndGivesBackTheRestAtItsEnd) {
  ASSERT_NO_FATAL_FAILURE(Join(InOrder()));
  auto source = Open({.name = "set", .examples = 100, .item_examples = 10, .passes = 1});
  ASSERT_NE(source, nullptr);
  // On a busy machine the reply comes after the few milliseconds that Take waits.
  const auto take = [&] {
    const absl::Time until = MonotonicNow() + kPatience;
    size_t taken = 0;
    while (taken == 0 && MonotonicNow() < until) taken = source->Take(10).value().size();
    return taken;
  };
  EXPECT_EQ(take(), 10u);
  source->Finish(1);  // No effect yet: the batch is still in training.
  EXPECT_EQ(take(), 10u);
  source->Finish(1);
  EXPECT_TRUE(scheduler_->Await([](const proto::WorkRequest& request) {
    return request.wanted() == 0 && request.finished_size() == 1 &&
           request.finished(0).first() == 0 && request.finished(0).count() == 10;
  }));
  source.reset();
  EXPECT_TRUE(scheduler_->Await([](const proto::WorkRequest& request) {
    return request.returned_size() > 0 && request.returned(0).first() == 10;
  })) << "the batch that was under way";
}

TEST_F(DataSourceTest, ReportsTheStepsOfItsGroup) {
  ASSERT_NO_FATAL_FAILURE(Join(InOrder()));
  auto source = Open({.name = "set", .examples = 4, .item_examples = 4, .passes = 1});
  ASSERT_NE(source, nullptr);
  StepNumbers& steps = worker_->core().steps();
  // What HybridStep tells in Begin, and in the Wait of the next step.
  const auto step = [&](uint64_t number) {
    EXPECT_TRUE(source->Take(2).ok());
    source->Finish(1);
    steps.Begin();
    steps.Set(steps.begun(), Step(number));
  };
  step(41);
  step(43);
  EXPECT_TRUE(scheduler_->Await([](const proto::WorkRequest& request) {
    return request.finished_size() == 1 && request.finished(0).count() == 2 &&
           request.finished(0).step() == 41 && request.finished_step() == 41;
  }));
  step(44);
  EXPECT_TRUE(scheduler_->Await([](const proto::WorkRequest& request) {
    return request.finished_size() == 1 && request.finished(0).step() == 43;
  }));
  // Nothing is left to train.
  const absl::Time until = MonotonicNow() + LocalWorkQueue::kStepReportInterval + kPatience;
  const auto told = [&] {
    return scheduler_->Has([](const proto::WorkRequest& request) {
      return request.finished_size() == 0 && request.wanted() == 0 && request.finished_step() > 44;
    });
  };
  for (uint64_t number = 45; !told() && MonotonicNow() < until; ++number) step(number);
  EXPECT_TRUE(told());
}

// Whether the request does nothing but wait for a recall.
bool WaitsForRecall(const proto::WorkRequest& request) {
  return request.wanted() == 0 && request.finished().empty() && request.returned().empty() &&
         request.finished_step() == 0;
}

TEST_F(DataSourceTest, ReturnsWhatItHasNotBegunWhileItsProgramTrains) {
  std::atomic<bool> is_recalled = false;
  ASSERT_NO_FATAL_FAILURE(Join([&](const proto::WorkRequest& request, proto::WorkReply& reply) {
    const grpc::Status status = InOrder()(request, reply);
    if (WaitsForRecall(request)) {
      reply.set_return_untrained(is_recalled);
      reply.clear_ask_again_ms();
    }
    return status;
  }));
  const auto source = Open({.name = "set", .examples = 8, .item_examples = 2, .passes = 1});
  ASSERT_NE(source, nullptr);
  EXPECT_THAT(source->Take(2).value(), ElementsAre(0, 1));
  source->Finish(1);
  EXPECT_THAT(source->Take(2).value(), ElementsAre(2, 3));
  ASSERT_TRUE(scheduler_->Await(WaitsForRecall));
  is_recalled = true;
  EXPECT_TRUE(scheduler_->Await([](const proto::WorkRequest& request) {
    return ExamplesIn(request.returned()) == 4 && request.wanted() == 0;
  }));
  EXPECT_FALSE(scheduler_->Has([](const proto::WorkRequest& request) {
    return std::any_of(request.returned().begin(), request.returned().end(),
                       [](const proto::WorkItem& item) { return item.first() < 4; });
  })) << "in training";
  EXPECT_THAT(source->Take(2).value(), IsEmpty());
}

// Found by simulation, where a worker asked without a pause. Others have trained what it holds.
TEST_F(DataSourceTest, WaitsForNoRecallOnceAllIsFinished) {
  ASSERT_NO_FATAL_FAILURE(Join([&](const proto::WorkRequest& request, proto::WorkReply& reply) {
    const grpc::Status status = InOrder()(request, reply);
    if (!WaitsForRecall(request)) return status;
    reply.set_done(true);
    reply.clear_ask_again_ms();
    return status;
  }));
  auto source = Open({.name = "set", .examples = 8, .item_examples = 2, .passes = 1});
  ASSERT_NE(source, nullptr);
  ASSERT_TRUE(scheduler_->Await(WaitsForRecall));
  EXPECT_THAT(source->Take(2).value(), SizeIs(2));
  source->Finish(0);
  ASSERT_TRUE(scheduler_->Await(
      [](const proto::WorkRequest& request) { return request.finished_size() > 0; }));
  source.reset();
  EXPECT_EQ(scheduler_->Count(WaitsForRecall), 1);
}

TEST_F(DataSourceTest, WaitsForNoRecallOfASchedulerThatDoesNotKnowThem) {
  ASSERT_NO_FATAL_FAILURE(Join([this](const proto::WorkRequest& request, proto::WorkReply& reply) {
    const grpc::Status status = InOrder()(request, reply);
    if (!reply.items().empty()) reply.clear_ask_again_ms();
    return status;
  }));
  const auto source = Open({.name = "set", .examples = 10, .item_examples = 2, .passes = 2});
  ASSERT_NE(source, nullptr);
  EXPECT_THAT(TakeAll(*source), SizeIs(20));
  EXPECT_FALSE(scheduler_->Has(WaitsForRecall));
}

TEST_F(DataSourceTest, TakesPartWithoutExamplesWhenNoneAreThere) {
  ASSERT_NO_FATAL_FAILURE(Join([](const proto::WorkRequest&, proto::WorkReply& reply) {
    reply.set_ask_again_ms(1);
    return grpc::Status::OK;
  }));
  const auto source = Open({.name = "set", .examples = 10, .item_examples = 1, .passes = 1});
  ASSERT_NE(source, nullptr);
  const auto batch = source->Take(4);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(*batch, IsEmpty());
  EXPECT_FALSE(source->done());
}

TEST_F(DataSourceTest, ItemsThatCannotBeAreNotTaken) {
  ASSERT_NO_FATAL_FAILURE(Join([](const proto::WorkRequest& request, proto::WorkReply& reply) {
    reply.set_ask_again_ms(1);
    if (request.wanted() == 0) return grpc::Status::OK;
    AddItem(reply, 1, 0, 1);      // no such pass
    AddItem(reply, 0, 10, 1);     // beyond the end
    AddItem(reply, 0, 8, 3);      // across the end
    AddItem(reply, 0, ~0ull, 2);  // wraps around
    AddItem(reply, 0, 3, 2);
    return grpc::Status::OK;
  }));
  const auto source = Open({.name = "set", .examples = 10, .item_examples = 2, .passes = 1});
  ASSERT_NE(source, nullptr);
  EXPECT_THAT(source->Take(2).value(), ElementsAre(3, 4));
}

TEST_F(DataSourceTest, MeetsTheMembersOfItsGroupAtTheEndOfEachPass) {
  ASSERT_NO_FATAL_FAILURE(Join(InOrderOfPasses()));
  const auto hybrid = HybridStep::Create(*worker_, {});
  ASSERT_TRUE(hybrid.ok()) << hybrid.status();
  auto source = Open({.name = "set",
                      .examples = 10,
                      .item_examples = 4,
                      .passes = 3,
                      .at_pass_end = DataSource::AtPassEnd::kMeet});
  ASSERT_NE(source, nullptr);
  std::vector<uint32_t> all(10);
  std::iota(all.begin(), all.end(), 0);
  for (uint64_t pass = 0; pass < 3; ++pass) {
    EXPECT_EQ(source->pass(), pass);
    EXPECT_EQ(TakeAll(*source), all);
    EXPECT_EQ(source->NextPass().status().code(), absl::StatusCode::kInvalidArgument)
        << "the members have not met";
    EXPECT_THAT(source->Take(3).value(), IsEmpty()) << "the next pass has not begun";
    EXPECT_EQ(source->MeetAtEnd(**hybrid).value(), true);
    EXPECT_EQ(source->NextPass().value(), pass < 2);
  }
  EXPECT_EQ(source->pass(), 3u);
  EXPECT_TRUE(source->done());
  EXPECT_THAT(source->Take(3).value(), IsEmpty());
  EXPECT_THAT(scheduler_->barriers(),
              ElementsAre("end/set/0/1/1/0", "end/set/1/1/1/0", "end/set/2/1/1/0"));
}

TEST_F(DataSourceTest, NamesTheNextPassBeforeItTrains) {
  ASSERT_NO_FATAL_FAILURE(Join(InOrderOfPasses()));
  const auto hybrid = HybridStep::Create(*worker_, {});
  ASSERT_TRUE(hybrid.ok()) << hybrid.status();
  auto source = Open(
      {.name = "set", .examples = 10, .passes = 2, .at_pass_end = DataSource::AtPassEnd::kMeet});
  ASSERT_NE(source, nullptr);
  TakeAll(*source);
  ASSERT_EQ(source->MeetAtEnd(**hybrid).value(), true);
  ASSERT_EQ(source->NextPass().value(), true);
  EXPECT_TRUE(scheduler_->Has([](const proto::WorkRequest& request) {
    return request.pass() == 1 && request.wanted() == 0;
  })) << "a member that joins now has to learn of it";
  source.reset();
  EXPECT_TRUE(scheduler_->Has([](const proto::WorkRequest& request) {
    return request.pass() == 2;
  })) << "it leaves";
}

TEST_F(DataSourceTest, BeginsInThePassOfItsGroup) {
  int refused = 0;
  ASSERT_NO_FATAL_FAILURE(Join([&](const proto::WorkRequest& request, proto::WorkReply& reply) {
    if (!request.has_pass() && refused++ < 2) {
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "not known yet");
    }
    reply.set_group_pass(2);
    reply.set_passes_finished(3);
    if (request.pass() == 2 && request.wanted() > 0) AddItem(reply, 3, 0, 1);  // of another pass
    reply.set_ask_again_ms(1);
    return grpc::Status::OK;
  }));
  const auto source = Open(
      {.name = "set", .examples = 10, .passes = 5, .at_pass_end = DataSource::AtPassEnd::kMeet});
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->pass(), 2u);
  EXPECT_TRUE(source->done()) << "the others have not met yet";
  EXPECT_THAT(source->Take(3).value(), IsEmpty());
}

TEST_F(DataSourceTest, ANewMemberFollowsItsGroupToTheNextPass) {
  finished_ = given_ = 10;
  ASSERT_NO_FATAL_FAILURE(Join([this](const proto::WorkRequest& request, proto::WorkReply& reply) {
    if (request.has_pass()) return InOrderOfPasses()(request, reply);
    reply.set_passes_finished(1);  // and the group is in the first one
    return grpc::Status::OK;
  }));
  const auto hybrid = HybridStep::Create(*worker_, {});
  ASSERT_TRUE(hybrid.ok()) << hybrid.status();
  const auto source = Open(
      {.name = "set", .examples = 10, .passes = 3, .at_pass_end = DataSource::AtPassEnd::kMeet});
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->pass(), 0u);
  EXPECT_TRUE(source->done());
  group_pass_ = 1;
  EXPECT_EQ(source->MeetAtEnd(**hybrid).value(), false) << "it has missed that";
  EXPECT_EQ(source->pass(), 1u);
  EXPECT_THAT(TakeAll(*source), SizeIs(10));
  EXPECT_THAT(scheduler_->barriers(), IsEmpty());
}

// As when the scheduler has restarted, and the reply of the barrier was lost.
TEST_F(DataSourceTest, AMemberWhoseGroupIsInALaterPassEndsItsOwn) {
  ASSERT_NO_FATAL_FAILURE(Join(InOrderOfPasses()));
  const auto hybrid = HybridStep::Create(*worker_, {});
  ASSERT_TRUE(hybrid.ok()) << hybrid.status();
  const auto source = Open(
      {.name = "set", .examples = 10, .passes = 3, .at_pass_end = DataSource::AtPassEnd::kMeet});
  ASSERT_NE(source, nullptr);
  TakeAll(*source);
  group_pass_ = 1;
  EXPECT_THAT(source->Take(3).value(), IsEmpty());
  EXPECT_EQ(source->pass(), 0u) << "its program has not seen the end of the pass";
  EXPECT_EQ(source->MeetAtEnd(**hybrid).value(), true);
  EXPECT_THAT(scheduler_->barriers(), IsEmpty()) << "no other member would come";
  EXPECT_EQ(source->NextPass().value(), true);
  EXPECT_EQ(source->pass(), 1u);
  EXPECT_THAT(TakeAll(*source), SizeIs(10));
}

TEST_F(DataSourceTest, SaysWhatTheSchedulerRefuses) {
  ASSERT_NO_FATAL_FAILURE(Join([](const proto::WorkRequest&, proto::WorkReply&) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "others say 70 examples");
  }));
  const absl::Status status =
      DataSource::Open(*worker_, {.name = "set", .examples = 60, .item_examples = 1}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("others say 70 examples"));
}

TEST_F(DataSourceTest, RefusesOptionsThatMakeNoSense) {
  ASSERT_NO_FATAL_FAILURE(Join(InOrder()));
  for (const DataSource::Options& options :
       {DataSource::Options{.name = "set", .examples = 0},
        DataSource::Options{.name = "set", .examples = (1ull << 32) + 1},
        DataSource::Options{.name = "set", .examples = 4, .item_examples = 0},
        DataSource::Options{.name = "set", .examples = 4, .item_examples = 5},
        DataSource::Options{.name = "set", .examples = 4, .passes = 0}}) {
    EXPECT_EQ(DataSource::Open(*worker_, options).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace covey::worker
