// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/work/work_workload.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/sim/cluster/scripted_client.h"
#include "tests/sim/workloads/expected_errors.h"
#include "tests/sim/workloads/work/meeting_trainer.h"
#include "tests/sim/workloads/work/pass_meetings.h"
#include "tests/sim/workloads/work/recall_wait.h"
#include "tests/sim/workloads/work/work_ledger.h"
#include "tests/sim/workloads/work/work_plan.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

constexpr absl::Duration kLookAgain = absl::Milliseconds(100);
// Only the scheduler knows which items it gave in reply to an unanswered request, so the request is
// retried until it is answered.
constexpr absl::Duration kPatience = absl::Hours(24);
// A report waits for the scheduler's disk, up to a second on the slowest, and all other trainers
// may have died: one trainer can report this many, one by one, within the duration of a seed.
constexpr uint64_t kItemsMax = 600;
// Drawn from a stream of its own, so that all other seeds run the histories that they ran before
// there were meetings; chosen so that those of regressions.txt are among them.
constexpr uint64_t kMeetingStream = 7;
constexpr double kMeetingShare = 0.3;
// The same for recalls.
constexpr uint64_t kRecallStream = 17;
constexpr double kRecallShare = 0.5;

class WorkWorkload : public Workload {
 public:
  WorkWorkload(Random random, Violations& violations);

  std::string name() const override { return std::string(kWork); }
  uint32_t groups() const override { return 1; }
  bool is_elastic() const override { return meets_; }
  void Adapt(SimConfig& config) const override {
    if (meets_) config.scheduler.workers_per_group = workers_;
  }
  void SetUp(SimCluster& cluster) override;
  bool Finished() const override;
  void Check() override;
  std::string Report() const override;

 private:
  class Trainer;

  Violations& violations_;
  const uint32_t workers_;
  WorkPlan plan_;
  const double haste_;
  // The trainers are members of a group, and meet at the end of each pass.
  const bool meets_;
  WorkLedger ledger_;
  PassMeetings meetings_;
  const SimCluster* cluster_ = nullptr;
  WorkProgress progress_;
};

class WorkWorkload::Trainer : public Script {
 public:
  Trainer(WorkWorkload& workload, Random random)
      : workload_(workload),
        random_(random),
        ahead_(1 + static_cast<uint32_t>(random_.Below(4))),
        slowness_(workload.plan_.DrawSlowness(random_)) {}

  void Step(absl::Time now, client::ClientActor& client, Outbox& outbox) override {
    if (done_) return;
    if (workload_.plan_.recalls) HeedRecalls(now, client, outbox);
    if (now < next_) return;
    if (!held_.empty()) Train(now);
    if (!under_way_ && (held_.size() < ahead_ || !finished_.empty())) {
      Ask(now, static_cast<uint32_t>(ahead_ - std::min<size_t>(ahead_, held_.size())), client,
          outbox);
    }
  }
  absl::Time NextWake() const override {
    const bool waits = done_ || (under_way_ && held_.empty());
    return waits ? absl::InfiniteFuture() : next_;
  }
  bool done() const override { return done_; }

 private:
  // The item at the front was trained, or is returned.
  void Train(absl::Time now) {
    next_ = now + workload_.plan_.think_max * (slowness_ * random_.Uniform());
    if (random_.Chance(0.03)) {
      returned_.push_back(held_.front());
    } else {
      finished_.push_back(held_.front());
      ++workload_.progress_.trained;
    }
    held_.pop_front();
  }

  void HeedRecalls(absl::Time now, client::ClientActor& client, Outbox& outbox) {
    if (recall_.TakeRecall()) {
      workload_.progress_.recalled += held_.size();
      returned_.insert(returned_.end(), held_.begin(), held_.end());
      held_.clear();
      if (!returned_.empty() && !under_way_) Ask(now, 0, client, outbox);
    }
    if (!held_.empty()) recall_.Send(now, workload_.plan_.Request(), client, outbox);
  }

  void Ask(absl::Time now, uint32_t wanted, client::ClientActor& client, Outbox& outbox) {
    under_way_ = true;
    const absl::Time deadline = now + kPatience;
    proto::Envelope request;
    proto::WorkRequest& body = *request.mutable_work_request();
    body = workload_.plan_.Request();
    body.set_wanted(wanted);
    asked_ = {finished_, returned_};
    for (const proto::WorkItem& item : finished_) *body.add_finished() = item;
    for (const proto::WorkItem& item : returned_) *body.add_returned() = item;
    finished_.clear();
    returned_.clear();
    client.control().Start(
        now, std::move(request), deadline,
        [this](absl::Time at, const absl::Status& status, const proto::Envelope* reply, Outbox&) {
          Answered(at, status, reply);
        },
        outbox);
  }

  void Answered(absl::Time now, const absl::Status& status, const proto::Envelope* reply) {
    under_way_ = false;
    next_ = std::max(next_, now);
    if (!status.ok()) {
      if (!IsExpected(status)) workload_.violations_.Add(kWork, status.ToString());
      // The outcome of the request is unknown: the same report is sent again.
      finished_.insert(finished_.begin(), asked_.first.begin(), asked_.first.end());
      returned_.insert(returned_.begin(), asked_.second.begin(), asked_.second.end());
      next_ = now + kLookAgain;
      return;
    }
    const proto::WorkReply& body = reply->work_reply();
    for (const proto::WorkItem& item : body.items()) held_.push_back(item);
    if (body.done()) {
      done_ = true;
      ++workload_.progress_.told_done;
    } else if (held_.empty()) {
      next_ = now + absl::Milliseconds(std::max<uint32_t>(100, body.ask_again_ms()));
    }
  }

  WorkWorkload& workload_;
  Random random_;
  const uint32_t ahead_;
  const double slowness_;
  RecallWait recall_;
  absl::Time next_ = absl::InfinitePast();
  bool under_way_ = false;
  bool done_ = false;
  std::deque<proto::WorkItem> held_;
  std::vector<proto::WorkItem> finished_;  // not reported yet
  std::vector<proto::WorkItem> returned_;
  // The report in the pending request.
  std::pair<std::vector<proto::WorkItem>, std::vector<proto::WorkItem>> asked_;
};

WorkWorkload::WorkWorkload(Random random, Violations& violations)
    : violations_(violations),
      workers_(1 + static_cast<uint32_t>(random.Below(6))),
      // A braced list draws from left to right.
      plan_{.examples = 20 + random.Below(300),
            .item_examples = 1 + random.Below(20),
            .passes = 1 + random.Below(4),
            .seed = random.Chance(0.7) ? random.Next() : 0,
            .recalls = random.Split(kRecallStream).Chance(kRecallShare)},
      haste_(0.1 + random.Uniform()),
      meets_(random.Split(kMeetingStream).Chance(kMeetingShare)),
      ledger_(violations, plan_.examples, plan_.passes, [this] { return cluster_->published(); }),
      meetings_(violations, [this] { return cluster_->published(); }) {
  plan_.item_examples =
      std::max(plan_.item_examples, (plan_.passes * plan_.examples - 1) / kItemsMax + 1);
}

void WorkWorkload::SetUp(SimCluster& cluster) {
  cluster_ = &cluster;
  const uint64_t items =
      plan_.passes * ((plan_.examples + plan_.item_examples - 1) / plan_.item_examples);
  plan_.think_max = cluster.config().safety * (2 * haste_ * workers_ / static_cast<double>(items));
  cluster.AddObserver(ledger_);
  cluster.OnSchedulerStart([this](absl::Time now) { ledger_.SchedulerStarted(now); });
  if (meets_) cluster.AddObserver(meetings_);
  for (uint32_t i = 0; i < workers_; ++i) {
    if (meets_) {
      cluster.AddClient(absl::StrCat("client-", i), proto::WORKER, [this](Random random) {
        return std::make_unique<MeetingTrainer>(
            MeetingTrainer::Options{
                .plan = plan_,
                .progress = progress_,
                .violations = violations_,
                .is_member = [this](NodeId node) { return meetings_.IsMember(node); }},
            random);
      });
      continue;
    }
    cluster.AddClient(absl::StrCat("client-", i), proto::CLIENT,
                      [this](Random random) { return std::make_unique<Trainer>(*this, random); });
  }
}

bool WorkWorkload::Finished() const {
  if (progress_.told_done == 0) return false;
  return std::none_of(cluster_->processes().begin(), cluster_->processes().end(),
                      [](const auto& process) {
                        return process->name().rfind("client-", 0) == 0 && process->running();
                      });
}

void WorkWorkload::Check() {
  if (progress_.trained * plan_.item_examples < plan_.passes * plan_.examples) {
    violations_.Add(kWork, "all is finished, and less was trained");
  }
}

std::string WorkWorkload::Report() const {
  return absl::StrCat("workers=", workers_, " examples=", plan_.examples,
                      " item=", plan_.item_examples, " passes=", plan_.passes, " meets=", meets_,
                      " trained=", progress_.trained, " recalls=", plan_.recalls,
                      " recalled=", progress_.recalled, " given_again=", ledger_.given_again(),
                      " met=", meetings_.met(), " told_done=", progress_.told_done);
}

}  // namespace

std::unique_ptr<Workload> MakeWorkWorkload(Random random, Violations& violations) {
  return std::make_unique<WorkWorkload>(random, violations);
}

}  // namespace covey::sim
