// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/work/work_workload.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/sim/cluster/scripted_client.h"
#include "tests/sim/workloads/expected_errors.h"
#include "tests/sim/workloads/work/work_ledger.h"
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

class WorkWorkload : public Workload {
 public:
  WorkWorkload(Random random, Violations& violations);

  std::string name() const override { return std::string(kWork); }
  uint32_t groups() const override { return 1; }
  void SetUp(SimCluster& cluster) override;
  bool Finished() const override;
  void Check() override;
  std::string Report() const override;

 private:
  class Trainer;

  Violations& violations_;
  const uint32_t workers_;
  const uint64_t examples_;
  uint64_t item_examples_;
  const uint64_t passes_;
  const uint64_t seed_;
  const double haste_;
  WorkLedger ledger_;
  const SimCluster* cluster_ = nullptr;
  absl::Duration think_max_;
  uint64_t told_done_ = 0;
  uint64_t trained_ = 0;
};

class WorkWorkload::Trainer : public Script {
 public:
  Trainer(WorkWorkload& workload, Random random)
      : workload_(workload), random_(random), ahead_(1 + static_cast<uint32_t>(random_.Below(4))) {}

  void Step(absl::Time now, client::ClientActor& client, Outbox& outbox) override {
    if (done_ || now < next_) return;
    if (!held_.empty()) Train(now);
    if (!under_way_ && (held_.size() < ahead_ || !finished_.empty())) Ask(now, client, outbox);
  }
  absl::Time NextWake() const override {
    const bool waits = done_ || (under_way_ && held_.empty());
    return waits ? absl::InfiniteFuture() : next_;
  }
  bool done() const override { return done_; }

 private:
  // The item at the front was trained, or is returned.
  void Train(absl::Time now) {
    next_ = now + workload_.think_max_ * random_.Uniform();
    if (random_.Chance(0.03)) {
      returned_.push_back(held_.front());
    } else {
      finished_.push_back(held_.front());
      ++workload_.trained_;
    }
    held_.pop_front();
  }

  void Ask(absl::Time now, client::ClientActor& client, Outbox& outbox) {
    under_way_ = true;
    const absl::Time deadline = now + kPatience;
    proto::Envelope request;
    proto::WorkRequest& body = *request.mutable_work_request();
    body.set_name("examples");
    body.set_examples(workload_.examples_);
    body.set_item_examples(workload_.item_examples_);
    body.set_passes(workload_.passes_);
    body.set_seed(workload_.seed_);
    body.set_wanted(static_cast<uint32_t>(ahead_ - std::min<size_t>(ahead_, held_.size())));
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
      ++workload_.told_done_;
    } else if (held_.empty()) {
      next_ = now + absl::Milliseconds(std::max<uint32_t>(100, body.ask_again_ms()));
    }
  }

  WorkWorkload& workload_;
  Random random_;
  const uint32_t ahead_;
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
      examples_(20 + random.Below(300)),
      item_examples_(1 + random.Below(20)),
      passes_(1 + random.Below(4)),
      seed_(random.Chance(0.7) ? random.Next() : 0),
      haste_(0.1 + random.Uniform()),
      ledger_(violations, examples_, passes_, [this] { return cluster_->published(); }) {
  item_examples_ = std::max(item_examples_, (passes_ * examples_ - 1) / kItemsMax + 1);
}

void WorkWorkload::SetUp(SimCluster& cluster) {
  cluster_ = &cluster;
  const uint64_t items = passes_ * ((examples_ + item_examples_ - 1) / item_examples_);
  think_max_ = cluster.config().safety * (2 * haste_ * workers_ / static_cast<double>(items));
  cluster.AddObserver(ledger_);
  cluster.OnSchedulerStart([this](absl::Time now) { ledger_.SchedulerStarted(now); });
  for (uint32_t i = 0; i < workers_; ++i) {
    cluster.AddClient(absl::StrCat("client-", i), proto::CLIENT,
                      [this](Random random) { return std::make_unique<Trainer>(*this, random); });
  }
}

bool WorkWorkload::Finished() const {
  if (told_done_ == 0) return false;
  return std::none_of(cluster_->processes().begin(), cluster_->processes().end(),
                      [](const auto& process) {
                        return process->name().rfind("client-", 0) == 0 && process->running();
                      });
}

void WorkWorkload::Check() {
  if (trained_ * item_examples_ < passes_ * examples_) {
    violations_.Add(kWork, "all is finished, and less was trained");
  }
}

std::string WorkWorkload::Report() const {
  return absl::StrCat("workers=", workers_, " examples=", examples_, " item=", item_examples_,
                      " passes=", passes_, " trained=", trained_,
                      " given_again=", ledger_.given_again(), " told_done=", told_done_);
}

}  // namespace

std::unique_ptr<Workload> MakeWorkWorkload(Random random, Violations& violations) {
  return std::make_unique<WorkWorkload>(random, violations);
}

}  // namespace covey::sim
