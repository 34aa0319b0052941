// SPDX-License-Identifier: Apache-2.0

// Groups of workers that train, report and return examples at random, with a cut at a random step.
// The ledgers at the cut are compared with what was really trained.

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "gtest/gtest.h"
#include "scheduler/state/cluster_state_fixture.h"
#include "scheduler/work/data_dispatcher.h"

namespace covey::scheduler {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);
constexpr char kName[] = "digits";

class RandomRun {
 public:
  // `liar`: one worker tells the cut's step for examples that it has trained in the step after.
  explicit RandomRun(uint64_t seed, bool liar = false) : random_(seed), liar_(liar) {
    examples_ = 20 + random_.Below(200);
    passes_ = 1 + random_.Below(3);
    const uint32_t groups = 1 + static_cast<uint32_t>(random_.Below(3));
    proto::ClusterView& view = *state_.mutable_view();
    uint64_t next_node = 2;
    for (uint32_t id = 1; id <= groups; ++id) {
      proto::Group& group = *view.add_groups();
      group.set_id(id);
      group.set_state(proto::Group::ACTIVE);
      const uint64_t first_step = random_.Below(50);
      for (uint64_t i = 1 + random_.Below(3); i > 0; --i, ++next_node) {
        proto::Node& node = *view.add_nodes();
        node.set_id(next_node);
        node.set_role(proto::WORKER);
        node.set_state(proto::Node::ALIVE);
        group.add_members(next_node);
        workers_.push_back({.node = next_node, .group = GroupId(id), .step = first_step});
      }
    }
    state_.record().set_next_node(next_node);
    Restart();
  }

  // Whether the ledgers at the cut hold exactly what was trained up to it. A failure for anything
  // else that goes wrong.
  bool IsExact() {
    const uint64_t cut_after = random_.Below(300);
    std::optional<uint64_t> restart_at;
    if (random_.Chance(0.3)) restart_at = random_.Below(cut_after + 1);
    for (uint64_t event = 0; event < 5000; ++event) {
      now_ += absl::Milliseconds(random_.Below(4));
      if (event == restart_at) Restart();
      if (event >= cut_after && cut_.empty()) BeginCut();
      Act(workers_[random_.Below(workers_.size())]);
      Tick();
      if (!cut_.empty() && HavePassed() && dispatcher_->CutIsComplete()) return Compare();
    }
    ADD_FAILURE() << "the cut still waits: " << dispatcher_->CutWaitsFor();
    return false;
  }

 private:
  struct Worker {
    uint64_t node = 0;
    GroupId group;
    uint64_t step = 0;  // that it has finished
    uint64_t told_step = 0;
    std::deque<proto::WorkItem> held = {};
    std::deque<proto::WorkItem> trained = {};
    std::optional<Message> report = {};  // not answered yet
    std::vector<Message> old_reports = {};
    uint64_t asked = 0;  // request id
  };

  void Restart() {
    dispatcher_ = std::make_unique<DataDispatcher>(state_);
    dispatcher_->Start(now_, now_);
  }

  proto::WorkRequest Request() const {
    proto::WorkRequest request;
    request.set_name(kName);
    request.set_examples(examples_);
    request.set_item_examples(7);
    request.set_passes(passes_);
    return request;
  }
  Message MessageOf(const Worker& worker, proto::WorkRequest request) {
    Message message;
    message.envelope.mutable_header()->set_node(worker.node);
    message.envelope.mutable_header()->set_request_id(++last_id_);
    *message.envelope.mutable_work_request() = std::move(request);
    return message;
  }
  void Send(const Message& message) {
    std::vector<DataDispatcher::Answer> answers;
    dispatcher_->OnRequest(now_, message, answers);
    TakeIn(answers);
  }
  void Tick() {
    std::vector<DataDispatcher::Answer> answers;
    if (dispatcher_->NextTick() <= now_) dispatcher_->Tick(now_, answers);
    TakeIn(answers);
  }
  void TakeIn(const std::vector<DataDispatcher::Answer>& answers) {
    for (const DataDispatcher::Answer& answer : answers) {
      ASSERT_TRUE(answer.status.ok()) << answer.status;
      Worker& worker = workers_[answer.request.from().node.value() - 2];
      const uint64_t id = answer.request.envelope.header().request_id();
      if (worker.asked == id) {
        worker.held.insert(worker.held.end(), answer.reply.items().begin(),
                           answer.reply.items().end());
        worker.asked = 0;
      }
      if (!worker.report || worker.report->envelope.header().request_id() != id) continue;
      worker.old_reports.push_back(*std::exchange(worker.report, std::nullopt));
    }
  }

  void Act(Worker& worker) {
    const uint64_t dice = random_.Below(100);
    if (dice < 35) {
      Train(worker);
    } else if (dice < 70) {
      Report(worker);
    } else if (dice < 90) {
      if (worker.held.size() > 3) return;
      proto::WorkRequest request = Request();
      request.set_wanted(1 + static_cast<uint32_t>(random_.Below(3)));
      const Message message = MessageOf(worker, std::move(request));
      worker.asked = last_id_;
      Send(message);
      if (random_.Chance(0.2)) Send(message);
    } else if (dice < 95) {
      if (worker.held.empty()) return;
      proto::WorkRequest request = Request();
      *request.add_returned() = worker.held.back();
      worker.held.pop_back();
      Send(MessageOf(worker, std::move(request)));
    } else if (!worker.old_reports.empty()) {
      Send(worker.old_reports[random_.Below(worker.old_reports.size())]);  // A late duplicate.
    }
  }

  // The next step of its group, unless others are behind.
  void Train(Worker& worker) {
    for (const Worker& other : workers_) {
      if (other.group == worker.group && other.step < worker.step) return;
    }
    ++worker.step;
    const uint64_t last = cut_.empty() ? 0 : cut_.at(worker.group);
    for (uint64_t left = random_.Below(12); left > 0 && !worker.held.empty();) {
      proto::WorkItem& item = worker.held.front();
      proto::WorkItem& piece = worker.trained.emplace_back(item);
      piece.set_count(std::min(left, item.count()));
      piece.set_step(worker.step);
      for (uint64_t i = 0; i < piece.count(); ++i) {
        truth_[piece.pass() * examples_ + piece.first() + i] = {worker.group, worker.step};
      }
      if (liar_ && worker.step == last + 1) {
        piece.set_step(last);
      }
      left -= piece.count();
      item.set_first(item.first() + piece.count());
      item.set_count(item.count() - piece.count());
      if (item.count() == 0) worker.held.pop_front();
    }
  }

  void Report(Worker& worker) {
    if (!worker.report) {
      if (worker.trained.empty() && worker.told_step == worker.step) return;
      proto::WorkRequest request = Request();
      for (uint64_t max = 1 + random_.Below(6); max > 0 && !worker.trained.empty(); --max) {
        *request.add_finished() = worker.trained.front();
        worker.trained.pop_front();
      }
      if (worker.trained.empty()) request.set_finished_step(worker.step);
      worker.told_step = request.finished_step();
      worker.report = MessageOf(worker, std::move(request));
      if (random_.Chance(0.2)) return;  // It is lost, and repeated.
    }
    const Message report = *worker.report;
    // Only what is beyond all reports is a fit last step.
    for (const proto::WorkItem& item : report.envelope.work_request().finished()) {
      NoteReported(worker, item.step());
    }
    NoteReported(worker, report.envelope.work_request().finished_step());
    Send(report);
  }
  void NoteReported(const Worker& worker, uint64_t step) {
    reported_[worker.group] = std::max(reported_[worker.group], step);
  }

  void BeginCut() {
    std::map<GroupId, uint64_t> last_steps;
    bool fits = true;
    for (const Worker& worker : workers_) {
      if (!last_steps.contains(worker.group)) {
        last_steps[worker.group] = worker.step + random_.Below(10);
        fits = fits && last_steps[worker.group] >= reported_[worker.group];
      }
    }
    const absl::Status status = dispatcher_->BeginCut(last_steps);
    // A restarted scheduler has forgotten reports, and examples that are all finished do not count.
    EXPECT_TRUE(status.ok() || !fits) << status;
    if (!status.ok()) return;
    if (!fits) return dispatcher_->EndCut();
    cut_ = std::move(last_steps);
  }
  bool HavePassed() const {
    return std::all_of(workers_.begin(), workers_.end(), [this](const Worker& worker) {
      return worker.step >= cut_.at(worker.group);
    });
  }

  bool Compare() {
    std::set<uint64_t> expected;
    for (const auto& [example, at] : truth_) {
      if (at.second <= cut_.at(at.first)) expected.insert(example);
    }
    TestState restored;
    restored.record().set_next_node(1000);
    for (const proto::WorkLedger& ledger : dispatcher_->LedgersAtCut()) {
      *restored.record().add_work() = ledger;
    }
    // A new job gives all other examples, each once and at once.
    DataDispatcher dispatcher(restored);
    dispatcher.Start(now_, now_);
    proto::WorkRequest request = Request();
    request.set_wanted(1000);
    std::vector<DataDispatcher::Answer> answers;
    dispatcher.OnRequest(now_, MessageOf(workers_[0], request), answers);
    std::set<uint64_t> given;
    for (const proto::WorkItem& item : answers.at(0).reply.items()) {
      *request.add_finished() = item;
      for (uint64_t i = 0; i < item.count(); ++i) {
        EXPECT_TRUE(given.insert(item.pass() * examples_ + item.first() + i).second) << "twice";
      }
    }
    if (given.size() + expected.size() != examples_ * passes_) return false;
    return std::none_of(given.begin(), given.end(),
                        [&](uint64_t example) { return expected.contains(example); });
  }

  Random random_;
  const bool liar_;
  uint64_t examples_ = 0;
  uint64_t passes_ = 0;
  TestState state_;
  std::unique_ptr<DataDispatcher> dispatcher_;
  absl::Time now_ = kStart;
  std::vector<Worker> workers_;  // by node id, from 2
  uint64_t last_id_ = 0;
  std::map<GroupId, uint64_t> cut_;  // empty before it begins
  std::map<GroupId, uint64_t> reported_;
  std::map<uint64_t, std::pair<GroupId, uint64_t>> truth_;  // where each example was trained
};

TEST(DataCutRandomTest, TheLedgersAtACutHoldExactlyItsExamples) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    EXPECT_TRUE(RandomRun(seed).IsExact()) << "seed " << seed;
    if (HasFailure()) return;
  }
}

TEST(DataCutRandomTest, AnExampleOfALaterStepInTheCutIsFound) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) found += !RandomRun(seed, true).IsExact();
  EXPECT_GT(found, 10);
}

}  // namespace
}  // namespace covey::scheduler
