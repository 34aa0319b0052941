// SPDX-License-Identifier: Apache-2.0
#include "scheduler/work/data_dispatcher.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/planted_bug_switch.h"
#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/state/cluster_state_fixture.h"
#include "scheduler/work/request_check.h"
#include "scheduler/work/work_item_fixture.h"

namespace covey::scheduler {
namespace {

using ::testing::HasSubstr;

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

// Two passes over 10 examples in items of 4, unless a test says otherwise.
proto::WorkRequest Request(uint32_t wanted) {
  proto::WorkRequest request;
  request.set_name("digits");
  request.set_examples(10);
  request.set_item_examples(4);
  request.set_passes(2);
  request.set_wanted(wanted);
  return request;
}

class DataDispatcherTest : public ::testing::Test {
 protected:
  DataDispatcherTest() {
    state_.record().set_next_node(kNewcomer);
    Restart();
  }

  Message MessageOf(uint64_t node, uint64_t id, const proto::WorkRequest& request) {
    Message message;
    message.envelope.mutable_header()->set_node(node);
    message.envelope.mutable_header()->set_request_id(id);
    *message.envelope.mutable_work_request() = request;
    return message;
  }
  // Notes the decisions, and the next record's account of them.
  void Note() {
    news_ = state_.News();
    recorded_ = state_.has_unlogged() ? state_.NextRecord().decision() : "";
  }
  void Send(const Message& message, std::vector<DataDispatcher::Answer>& answers) {
    dispatcher_->OnRequest(now_, message, answers);
    Note();
  }
  // The only reply.
  DataDispatcher::Answer Ask(uint64_t node, const proto::WorkRequest& request, uint64_t id = 0) {
    std::vector<DataDispatcher::Answer> answers;
    Send(MessageOf(node, id == 0 ? ++last_id_ : id, request), answers);
    EXPECT_EQ(answers.size(), 1u);
    return answers.empty() ? DataDispatcher::Answer() : answers.back();
  }
  std::vector<std::string> Items(const DataDispatcher::Answer& answer) {
    std::vector<std::string> items;
    for (const proto::WorkItem& item : answer.reply.items()) {
      items.push_back(absl::StrCat(item.pass(), ":", item.first(), "+", item.count()));
    }
    return items;
  }
  // Reports; the reply comes with the next record.
  DataDispatcher::Answer Report(uint64_t node, std::vector<proto::WorkItem> finished) {
    proto::WorkRequest request = Request(0);
    for (proto::WorkItem& item : finished) *request.add_finished() = item;
    now_ += DataDispatcher::kRecordInterval;
    return Ask(node, request);
  }

  // The scheduler restarts from its log.
  void Restart() {
    dispatcher_.emplace(state_);
    dispatcher_->Start(now_, now_);
  }
  // Ends the lease of items that were given before a restart.
  void EndLease() {
    now_ += DataDispatcher::kLease;
    std::vector<DataDispatcher::Answer> answers;
    dispatcher_->Tick(now_, answers);
  }

  // Node ids from here on belong to nodes that register after a restart.
  static constexpr uint64_t kNewcomer = 10;

  TestState state_;
  std::optional<DataDispatcher> dispatcher_;
  std::string news_;
  std::string recorded_;
  absl::Time now_ = kStart;
  uint64_t last_id_ = 0;
};

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(DataDispatcherTest, GivesEachExampleOncePerPassInOrder) {
  EXPECT_THAT(Items(Ask(2, Request(2))), ElementsAre("0:0+4", "0:4+4"));
  EXPECT_THAT(news_, HasSubstr("2 passes over 10 examples"));
  EXPECT_THAT(Items(Ask(3, Request(2))), ElementsAre("0:8+2", "1:0+4"));
  EXPECT_THAT(Items(Ask(2, Request(9))), ElementsAre("1:4+4", "1:8+2"));
  const DataDispatcher::Answer none = Ask(2, Request(1));
  EXPECT_THAT(Items(none), IsEmpty());
  EXPECT_FALSE(none.reply.done());
  EXPECT_GT(none.reply.ask_again_ms(), 0u);
}

TEST_F(DataDispatcherTest, IsDoneWhenAllIsFinishedAndNotBefore) {
  Ask(2, Request(6));
  EXPECT_FALSE(Report(2, {Item(0, 0, 10)}).reply.done());
  EXPECT_THAT(news_, HasSubstr("1 of 2 passes finished"));
  const DataDispatcher::Answer last = Report(2, {Item(1, 0, 10)});
  EXPECT_TRUE(last.reply.done());
  EXPECT_EQ(last.reply.examples_finished(), 20u);
  EXPECT_TRUE(Ask(3, Request(1)).reply.done());
}

TEST_F(DataDispatcherTest, WhatALostWorkerHadAndHadNotFinishedIsGivenAgainFirst) {
  Ask(2, Request(2));
  Report(2, {Item(0, 0, 4), Item(0, 4, 1)});
  std::vector<DataDispatcher::Answer> answers;
  dispatcher_->OnDeparture(now_, NodeId(2), answers);
  Note();
  EXPECT_THAT(news_, HasSubstr("3 examples of node 2 are given to others"));
  EXPECT_THAT(Items(Ask(3, Request(2))), ElementsAre("0:5+3", "0:8+2"));
}

TEST_F(DataDispatcherTest, WhatIsGivenBackIsGivenAgainFirst) {
  Ask(2, Request(2));
  proto::WorkRequest back = Request(0);
  *back.add_returned() = Item(0, 4, 4);
  Ask(2, back);
  EXPECT_THAT(Items(Ask(3, Request(1))), ElementsAre("0:4+4"));
}

// Found by simulation: a duplicate of a request returned items that its reply had given again.
TEST_F(DataDispatcherTest, ARepeatedRequestGivesBackOnce) {
  Ask(1, Request(1));
  proto::WorkRequest request = Request(1);
  *request.add_returned() = Item(0, 0, 4);
  const std::vector<std::string> given = Items(Ask(1, request, 7));
  EXPECT_EQ(Items(Ask(1, request, 7)), given);
  EXPECT_NE(Items(Ask(2, Request(1), 8)), given);
}

TEST_F(DataDispatcherTest, ARepeatedRequestGetsTheSameItems) {
  const auto first = Items(Ask(2, Request(1), 7));
  EXPECT_EQ(Items(Ask(2, Request(1), 7)), first);
  EXPECT_THAT(Items(Ask(2, Request(1), 8)), ElementsAre("0:4+4"));
}

TEST_F(DataDispatcherTest, ARepeatedRequestGetsItsItemsThoughAReportWasFaster) {
  Ask(2, Request(1), 1);
  const auto given = Items(Ask(2, Request(1), 7));
  proto::WorkRequest back = Request(0);
  *back.add_returned() = Item(0, 0, 4);
  Ask(2, back, 8);
  EXPECT_EQ(Items(Ask(2, Request(1), 7)), given);
}

TEST_F(DataDispatcherTest, ReportsWaitForOneRecordTogether) {
  Ask(2, Request(1));
  Ask(3, Request(1));
  Report(2, {Item(0, 0, 1)});
  std::vector<DataDispatcher::Answer> answers;
  proto::WorkRequest request = Request(0);
  *request.add_finished() = Item(0, 1, 3);
  Send(MessageOf(2, 100, request), answers);
  EXPECT_EQ(recorded_, "");
  request.clear_finished();
  *request.add_finished() = Item(0, 4, 4);
  Send(MessageOf(3, 101, request), answers);
  EXPECT_EQ(recorded_, "");
  EXPECT_THAT(answers, IsEmpty());
  EXPECT_EQ(dispatcher_->NextTick(), now_ + DataDispatcher::kRecordInterval);
  dispatcher_->Tick(now_ + DataDispatcher::kRecordInterval, answers);
  Note();
  EXPECT_THAT(recorded_, HasSubstr("7 examples finished"));
  EXPECT_EQ(answers.size(), 2u);
  EXPECT_EQ(state_.record().work(0).finished_size(), 2);  // one range, and how far items are given
}

// A worker reports one thing after the other, so its last report may wait for the one before.
TEST_F(DataDispatcherTest, ReportsAreRecordedSoonerWhenNothingIsLeftToGive) {
  proto::WorkRequest request = Request(2);
  request.set_examples(8);
  request.set_item_examples(4);
  request.set_passes(1);
  Ask(2, request);
  request.set_wanted(0);
  *request.add_finished() = Item(0, 0, 2);
  now_ += DataDispatcher::kRecordInterval;
  Ask(2, request);
  request.mutable_finished(0)->set_first(2);
  std::vector<DataDispatcher::Answer> answers;
  Send(MessageOf(2, 100, request), answers);
  EXPECT_THAT(answers, IsEmpty());
  EXPECT_EQ(dispatcher_->NextTick(), now_ + DataDispatcher::kLastRecordInterval);
  *request.mutable_finished(0) = Item(0, 4, 4);
  Send(MessageOf(2, 101, request), answers);
  ASSERT_FALSE(answers.empty());
  EXPECT_TRUE(answers.back().reply.done());
}

// Otherwise no node would hold these items, and the pass would never end.
TEST_F(DataDispatcherTest, WhatALateCopyGotOfARestartedSchedulerIsGivenAgain) {
  proto::WorkRequest request = Request(1);
  request.set_examples(1000);
  request.set_passes(1);
  Ask(2, request, 7);
  Restart();
  const std::vector<std::string> copy = Items(Ask(2, request, 7));
  ASSERT_THAT(copy, testing::SizeIs(1));
  const std::vector<std::string> held = Items(Ask(2, request, 8));
  ASSERT_THAT(held, testing::SizeIs(1));
  EndLease();
  request.set_wanted(1000);
  const std::vector<std::string> rest = Items(Ask(3, request, 9));
  EXPECT_THAT(rest, testing::Contains(copy[0]));
  EXPECT_THAT(rest, testing::Not(testing::Contains(held[0]))) << "this one is surely held";
}

// A slow worker has time until the end of the pass.
TEST_F(DataDispatcherTest, WhatWasGivenBeforeARestartIsGivenAgainLastOfItsPass) {
  proto::WorkRequest request = Request(1);
  request.set_examples(1000);
  const std::string held = Items(Ask(2, request))[0];
  Restart();
  EndLease();
  const uint64_t unknown = 1 + ExampleLedger::kGivenAhead;  // items
  request.set_wanted(static_cast<uint32_t>(250 - unknown));
  const std::vector<std::string> others = Items(Ask(kNewcomer, request));
  EXPECT_THAT(others, testing::Not(testing::Contains(held)));
  EXPECT_THAT(others, testing::Contains("0:996+4"));
  // Before the next pass begins.
  request.set_wanted(static_cast<uint32_t>(unknown + 1));
  const std::vector<std::string> rest = Items(Ask(kNewcomer, request));
  EXPECT_EQ(rest.front(), held);
  EXPECT_EQ(rest.back(), "1:0+4");
}

// Found by simulation. The worker may take its time: its items are given to no other node.
TEST_F(DataDispatcherTest, WhatANewcomerGotFirstOfARestartedSchedulerIsItsOwn) {
  proto::WorkRequest request = Request(1);
  request.set_examples(1000);
  request.set_passes(1);
  const std::string lost = Items(Ask(2, request))[0];
  Restart();
  const std::vector<std::string> held = Items(Ask(kNewcomer, request));
  ASSERT_THAT(held, testing::SizeIs(1));
  EndLease();
  request.set_wanted(1000);
  const std::vector<std::string> rest = Items(Ask(3, request));
  EXPECT_THAT(rest, testing::Contains(lost));
  EXPECT_THAT(rest, testing::Not(testing::Contains(held[0])));
}

TEST_F(DataDispatcherTest, NonsenseIsRefusedByName) {
  Ask(2, Request(1));
  proto::WorkRequest other = Request(1);
  other.set_examples(11);
  EXPECT_THAT(std::string(Ask(3, other).status.message()), HasSubstr("all have to agree"));
  for (const proto::WorkItem& item :
       {Item(0, 8, 2), Item(0, 8, 3), Item(2, 0, 1), Item(0, 0, 0), Item(~0ull, ~0ull, ~0ull)}) {
    proto::WorkRequest request = Request(0);
    *request.add_finished() = item;
    EXPECT_EQ(Ask(2, request).status.code(), absl::StatusCode::kInvalidArgument);
  }
  other = Request(1);
  other.set_name("other");
  other.set_passes(~0ull);
  EXPECT_EQ(Ask(2, other).status.code(), absl::StatusCode::kInvalidArgument);
}

struct Outcome {
  // Examples that were not reported exactly once with an OK reply, or never trained.
  int wrong = 0;
  int recalls = 0;
};

// Workers that take, train, report, return what is recalled and die at random, and a scheduler that
// restarts from its newest record.
Outcome Train(uint64_t seed) {
  constexpr uint64_t kExamples = 50, kPasses = 3;
  Random random(seed);
  TestState state;
  auto dispatcher = std::make_unique<DataDispatcher>(state);
  absl::Time now = kStart;
  dispatcher->Start(now, now);
  uint64_t next_node = 2, next_id = 1;

  struct Worker {
    std::deque<proto::WorkItem> held;
    std::optional<Message> report;  // not answered yet
    bool waits = false;             // for a recall
  };
  std::map<uint64_t, Worker> workers;
  std::vector<int> reported(kExamples * kPasses);
  bool done = false;
  Outcome outcome;
  // What was recalled, and is to be returned.
  std::vector<std::pair<uint64_t, proto::WorkItem>> returns;
  proto::LogRecord durable;

  proto::WorkRequest base;
  base.set_name("digits");
  base.set_examples(kExamples);
  base.set_item_examples(4);
  base.set_passes(kPasses);
  const auto message_of = [&](uint64_t node, const proto::WorkRequest& request) {
    Message message;
    message.envelope.mutable_header()->set_node(node);
    message.envelope.mutable_header()->set_request_id(next_id++);
    *message.envelope.mutable_work_request() = request;
    return message;
  };
  const auto take_in = [&](const std::vector<DataDispatcher::Answer>& answers) {
    durable = state.record();  // replies leave when the state is durable
    for (const DataDispatcher::Answer& answer : answers) {
      const auto worker = workers.find(answer.request.from().node.value());
      if (worker == workers.end() || !answer.status.ok()) continue;
      done = done || answer.reply.done();
      if (answer.reply.return_untrained()) ++outcome.recalls;
      if (TellsNothing(answer.request.envelope.work_request())) worker->second.waits = false;
      while (answer.reply.return_untrained() && !worker->second.held.empty()) {
        returns.emplace_back(worker->first, worker->second.held.back());
        worker->second.held.pop_back();
      }
      for (const auto& item : answer.request.envelope.work_request().finished()) {
        for (uint64_t i = 0; i < item.count(); ++i) {
          ++reported[item.pass() * kExamples + item.first() + i];
        }
        worker->second.report.reset();
      }
      for (const auto& item : answer.reply.items()) worker->second.held.push_back(item);
    }
  };
  for (int step = 0; step < 20000 && !done; ++step) {
    now += absl::Milliseconds(random.Below(40));
    std::vector<DataDispatcher::Answer> answers;
    if (workers.size() < 4) workers[next_node++] = {};
    state.record().set_next_node(next_node);
    durable.set_next_node(next_node);
    auto at = workers.begin();
    std::advance(at, random.Below(workers.size()));
    auto& [node, worker] = *at;
    const uint64_t dice = random.Below(100);
    if (dice < 40) {
      proto::WorkRequest request = base;
      request.set_wanted(1 + static_cast<uint32_t>(random.Below(3)));
      if (worker.held.size() < 4) dispatcher->OnRequest(now, message_of(node, request), answers);
    } else if (dice < 85) {
      // A part of the items that it holds; a report without a reply is retried unchanged.
      if (!worker.report && !worker.held.empty()) {
        proto::WorkItem& item = worker.held.front();
        proto::WorkItem part = item;
        part.set_count(1 + random.Below(item.count()));
        item.set_first(item.first() + part.count());
        item.set_count(item.count() - part.count());
        if (item.count() == 0) worker.held.pop_front();
        proto::WorkRequest request = base;
        *request.add_finished() = part;
        worker.report = message_of(node, request);
      }
      if (worker.report) dispatcher->OnRequest(now, *worker.report, answers);
    } else if (dice < 90) {
      if (!worker.held.empty()) {
        proto::WorkRequest request = base;
        *request.add_returned() = worker.held.back();
        worker.held.pop_back();
        dispatcher->OnRequest(now, message_of(node, request), answers);
      }
    } else if (dice < 95 && !worker.report) {
      dispatcher->OnDeparture(now, NodeId(node), answers);
      workers.erase(node);
    } else if (random.Below(100) ==
               0) {  // rarely, so that the items that it holds back become free
      state.record() = durable;
      dispatcher = std::make_unique<DataDispatcher>(state);
      dispatcher->Start(now, now);
      for (auto& [holder, other] : workers) other.waits = false;
    }
    take_in(answers);
    answers.clear();
    if (dispatcher->NextTick() <= now) dispatcher->Tick(now, answers);
    take_in(answers);
    for (auto& [holder, item] : std::exchange(returns, {})) {
      proto::WorkRequest request = base;
      *request.add_returned() = item;
      answers.clear();
      dispatcher->OnRequest(now, message_of(holder, request), answers);
      take_in(answers);
    }
    for (auto& [holder, other] : workers) {
      if (other.waits || other.held.empty()) continue;
      other.waits = true;
      answers.clear();
      dispatcher->OnRequest(now, message_of(holder, base), answers);
      take_in(answers);
    }
  }
  EXPECT_TRUE(done) << "seed " << seed;
  outcome.wrong = static_cast<int>(
      std::count_if(reported.begin(), reported.end(), [](int times) { return times != 1; }));
  return outcome;
}

TEST(DataDispatcherPropertyTest, EveryExampleOfEveryPassIsFinishedExactlyOnce) {
  int recalls = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Outcome outcome = Train(seed);
    EXPECT_EQ(outcome.wrong, 0) << seed;
    recalls += outcome.recalls;
  }
  EXPECT_GT(recalls, 200);
}

TEST(DataDispatcherPropertyTest, GivingFinishedItemsAgainIsFound) {
  PlantBug(PlantedBug::kWorkGivenTwice);
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) wrong += Train(seed).wrong;
  PlantBug(PlantedBug::kNone);
  EXPECT_GT(wrong, 0);
}

}  // namespace
}  // namespace covey::scheduler
