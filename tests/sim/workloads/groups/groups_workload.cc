// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/groups/groups_workload.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/sim/cluster/scripted_worker.h"
#include "tests/sim/workloads/groups/group_results.h"
#include "tests/sim/workloads/groups/groups_plan.h"
#include "tests/sim/workloads/last_steps.h"
#include "tests/sim/workloads/truth/given_gradients.h"
#include "tests/sim/workloads/truth/staleness_truth.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

constexpr absl::string_view kName = "groups";
// Interval at which a script checks its condition.
constexpr absl::Duration kLookAgain = absl::Milliseconds(100);
constexpr absl::Duration kLastPatience = absl::Seconds(60);
// How late an operation may end after its deadline.
constexpr absl::Duration kSlack = absl::Seconds(3);

// Groups of real workers train: every member submits every tensor of every step, in an order of its
// own, and checks the results. Each step of each group is recognizable in the values, so
// StalenessTruth knows what was applied; GroupResults knows what members were told.
class GroupsWorkload : public Workload {
 public:
  GroupsWorkload(Random random, Violations& violations);

  std::string name() const override { return std::string(kGroups); }
  uint32_t groups() const override { return plan_.groups; }
  bool is_elastic() const override { return plan_.elastic; }
  void Adapt(SimConfig& config) const override;
  void SetUp(SimCluster& cluster) override;
  bool Finished() const override;
  void Check() override;
  std::string Report() const override;

 private:
  class Trainer;

  // Under bsp, a shard that was lost with its server waits for steps that some groups will not push
  // again: the job has to be restarted.
  bool IsBeyondRepair(absl::Time now) {
    return plan_.HasContract(Contract::Kind::kBsp) && !plan_.distributed() &&
           truth_.HistoryWasLost() && last_steps_.EveryDeathIsNoticed(now);
  }
  void AddMember(absl::Duration delay);

  Violations& violations_;
  const GroupsPlan plan_;
  Random random_;
  GivenGradients given_;
  StalenessTruth truth_;
  GroupResults results_;
  SimCluster* cluster_ = nullptr;
  absl::Duration think_max_;
  uint32_t members_ = 0;
  LastSteps last_steps_;
  std::map<std::string, NodeId> finished_;  // members with all steps
};

// The program of one member.
class GroupsWorkload::Trainer : public WorkerScript {
 public:
  Trainer(GroupsWorkload& workload, std::string name, Random random);

  void Step(absl::Time now, worker::WorkerActor& worker, Outbox& outbox) override;
  absl::Time NextWake() const override;
  bool done() const override { return done_; }

 private:
  enum class Phase { kTables, kPull, kThink, kSubmit, kFlush };
  struct Tensor {
    explicit Tensor(proto::TableSpec spec) : table(std::move(spec)) {}
    TableCreation table;
    TableId id;
    std::vector<float> gradient;
    std::vector<float> values;
    absl::Time submit_at = absl::InfiniteFuture();
    bool under_way = false;
  };

  const GroupsPlan& plan() const { return workload_.plan_; }
  // False: there is no group to train with, for now or for good.
  bool HasGroup(absl::Time now, worker::WorkerActor& worker);
  bool SetTables(absl::Time now, worker::WorkerActor& worker, Outbox& outbox);
  void PullAll(absl::Time now, worker::WorkerActor& worker, Outbox& outbox);
  void Begin(absl::Time now, worker::WorkerActor& worker, Outbox& outbox);
  void SubmitWhatIsDue(absl::Time now, worker::WorkerActor& worker, Outbox& outbox);
  void FlushAll(absl::Time now, worker::WorkerActor& worker, Outbox& outbox);
  void EndStep(absl::Time now, worker::WorkerActor& worker);
  worker::TensorRequest RequestFor(absl::Time now, size_t tensor, worker::WorkerActor& worker);
  void Ended(size_t tensor, const absl::Status& status, worker::WorkerActor& worker);
  // Records when given gradients now belong to steps of another group, or to other steps.
  void NoteMove(worker::WorkerActor& worker);
  GivenGradients::Place PlaceOf(size_t tensor, uint64_t step) const {
    return {group_, covey::Step(step), tensors_[tensor].id};
  }
  // The oldest step that may be in flight.
  uint64_t OldestStep() const {
    return step_.value() - std::min<uint64_t>(step_.value(), plan().hybrid.lag);
  }
  void CheckOwnSteps(size_t tensor);
  void CheckDeadlines(absl::Time now);
  void End(absl::string_view why) {
    done_ = true;
    workload_.cluster_->simulator().Trace(absl::StrCat(name_, " ends: ", why));
  }
  absl::Duration Patience() const {
    return step_.value() > plan().ordinary_steps ? kLastPatience
                                                 : plan().patience + workload_.think_max_ * 1.5;
  }
  // Whether the program was asked to leave.
  static bool Drains(worker::WorkerActor& worker) {
    const Member& member = worker.client().member();
    const proto::Node* node = member.view()->FindNode(member.node());
    return node != nullptr && node->draining();
  }

  GroupsWorkload& workload_;
  const std::string name_;
  Random random_;
  std::vector<Tensor> tensors_;
  Phase phase_ = Phase::kTables;
  absl::Time next_ = absl::InfinitePast();
  absl::Time next_submit_ = absl::InfiniteFuture();
  bool done_ = false;
  bool failed_ = false;
  uint32_t under_way_ = 0;
  absl::Time deadline_ = absl::InfiniteFuture();  // of everything in flight
  absl::Time late_since_ = absl::InfiniteFuture();

  covey::Step step_;
  GroupId group_;
  covey::Step first_step_;  // of this member in its group
  uint64_t position_ = 0;   // position of the group
  uint64_t samples_ = 0;
  uint64_t steps_aside_ = 0;
  // The group's round when this step began, and the one before.
  worker::GroupRound round_;
  worker::GroupRound round_before_;
  // The group was forming then: its members agree which step this is, and it may be another one.
  bool forming_ = false;
};

GroupsWorkload::Trainer::Trainer(GroupsWorkload& workload, std::string name, Random random)
    : workload_(workload), name_(std::move(name)), random_(random) {
  workload_.finished_.erase(name_);
  for (size_t i = 0; i < plan().tables.size(); ++i) tensors_.emplace_back(plan().Spec(i));
}

absl::Time GroupsWorkload::Trainer::NextWake() const {
  if (done_) return absl::InfiniteFuture();
  if (under_way_ == 0) return next_;
  const absl::Time late = std::min(deadline_, late_since_) + kSlack + absl::Milliseconds(1);
  return std::min(late, next_submit_);
}

void GroupsWorkload::Trainer::Step(absl::Time now, worker::WorkerActor& worker, Outbox& outbox) {
  if (done_) return;
  NoteMove(worker);
  CheckDeadlines(now);
  if (phase_ == Phase::kSubmit && !failed_) SubmitWhatIsDue(now, worker, outbox);
  if (under_way_ > 0) return;
  if (failed_ || !worker.group().failure().ok()) {
    worker.hybrid().Close();
    return End(absl::StrCat("its group: ", worker.group().failure().ToString()));
  }
  if (now < next_) return;
  next_ = now + kLookAgain;
  switch (phase_) {
    case Phase::kTables:
      if (HasGroup(now, worker) && SetTables(now, worker, outbox)) PullAll(now, worker, outbox);
      return;
    case Phase::kPull:
    case Phase::kSubmit:
    case Phase::kFlush:
      return EndStep(now, worker);
    case Phase::kThink:
      return Begin(now, worker, outbox);
  }
}

bool GroupsWorkload::Trainer::HasGroup(absl::Time now, worker::WorkerActor& worker) {
  const Member& member = worker.client().member();
  const proto::Group* group = member.view()->GroupOf(member.node());
  // A worker that is late, or has returned, waits for a group, but not forever. A worker whose
  // group has ended waits no longer.
  if (group == nullptr) {
    if (Drains(worker)) End("it was asked to leave before it was in a group");
    if (workload_.last_steps_.EveryDeathIsNoticed(now)) End("there is no group for it");
    return false;
  }
  if (group->state() != proto::Group::ACTIVE) End("its group is over");
  position_ = workload_.truth_.PositionOf(GroupId(group->id()));
  if (position_ >= plan().positions()) End("the values have no room for its group");
  // The group admits members between two steps, but its programs take no more steps and leave.
  const bool others_finished = std::any_of(
      workload_.finished_.begin(), workload_.finished_.end(),
      [&](const auto& finished) { return member.view()->GroupOf(finished.second) == group; });
  if (others_finished && !worker.group().ready() &&
      workload_.last_steps_.EveryDeathIsNoticed(now)) {
    End("its group finished without it");
  }
  return !done_ && worker.group().ready();
}

bool GroupsWorkload::Trainer::SetTables(absl::Time now, worker::WorkerActor& worker,
                                        Outbox& outbox) {
  std::vector<TableId> tables;
  for (Tensor& tensor : tensors_) {
    const proto::Table* table = tensor.table.Advance(now, worker.client(), outbox);
    if (!tensor.table.refusal().ok()) {
      workload_.violations_.Add(kName, tensor.table.refusal().ToString());
    }
    if (table == nullptr) continue;
    tensor.id = TableId(table->id());
    tables.push_back(tensor.id);
  }
  if (tables.size() < tensors_.size()) return false;
  const absl::Status set = worker.hybrid().SetTables(tables, plan().hybrid, Patience());
  if (!set.ok()) {
    workload_.violations_.Add(kName, absl::StrCat("tables: ", set.ToString()));
    return false;
  }
  for (size_t t = 0; t < tensors_.size(); ++t) {
    tensors_[t].gradient.assign(worker.hybrid().element_count(t), 0);
    tensors_[t].values.assign(worker.hybrid().element_count(t), 0);
  }
  return true;
}

void GroupsWorkload::Trainer::PullAll(absl::Time now, worker::WorkerActor& worker, Outbox& outbox) {
  phase_ = Phase::kPull;
  step_ = worker.hybrid().step();
  steps_aside_ = worker.hybrid().steps_aside();
  round_before_ = std::exchange(round_, worker.group().round());
  for (size_t t = 0; t < tensors_.size(); ++t) {
    worker.hybrid().Pull(now, RequestFor(now, t, worker), outbox);
  }
  // Checks at once for operations that have already ended.
  next_ = now;
}

void GroupsWorkload::Trainer::Begin(absl::Time now, worker::WorkerActor& worker, Outbox& outbox) {
  const Member& member = worker.client().member();
  const uint64_t ended = worker.hybrid().step().value();
  // Between its steps no error tells it that it should leave.
  if (ended >= plan().ordinary_steps && Drains(worker)) {
    workload_.finished_.erase(name_);
    return End("it was asked to leave");
  }
  if (workload_.IsBeyondRepair(now)) return End("others wait for steps that were lost");
  if (ended >= plan().steps()) {
    if (plan().hybrid.lag > 0 && step_.value() > 0 && workload_.finished_.count(name_) == 0) {
      return FlushAll(now, worker, outbox);
    }
    workload_.finished_[name_] = member.node();
    return;
  }
  if (ended >= plan().ordinary_steps &&
      !workload_.last_steps_.MayBegin(now, worker.group().id(), *member.view())) {
    return;
  }
  phase_ = Phase::kSubmit;
  worker.hybrid().BeginStep(now, outbox);
  step_ = worker.hybrid().step();
  if (group_ != worker.group().id()) first_step_ = step_;
  group_ = worker.group().id();
  position_ = workload_.truth_.PositionOf(group_);
  steps_aside_ = worker.hybrid().steps_aside();
  round_before_ = std::exchange(round_, worker.group().round());
  forming_ = !worker.group().ready();
  worker.client().member().progress().set_step(step_.value());
  samples_ = SamplesOf(workload_.random_.Split(group_.value()).Split(step_.value()), plan().samples,
                       worker.group().rank(), worker.group().size());
  // Ranks may change before the step begins, and some member needs an example. The same holds for
  // survivors when other members die.
  if (plan().elastic || !workload_.cluster_->config().quiet) ++samples_;
  for (Tensor& tensor : tensors_) {
    tensor.submit_at = now + workload_.think_max_ * (0.2 * random_.Uniform());
  }
  SubmitWhatIsDue(now, worker, outbox);
}

void GroupsWorkload::Trainer::SubmitWhatIsDue(absl::Time now, worker::WorkerActor& worker,
                                              Outbox& outbox) {
  const uint64_t element = position_ * plan().steps() + step_.value() - 1;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    Tensor& tensor = tensors_[t];
    if (tensor.submit_at > now) continue;
    tensor.submit_at = absl::InfiniteFuture();
    std::fill(tensor.gradient.begin(), tensor.gradient.end(), 0);
    for (size_t first = 0; first < tensor.gradient.size(); first += plan().elements()) {
      // -0 would be a gradient, too, but in the values it marks elements that no push has changed.
      if (element < plan().elements()) tensor.gradient[first + element] = -1;
    }
    // A gradient that is submitted after the group stepped past this member is dropped.
    if (worker.hybrid().steps_aside() == steps_aside_) {
      workload_.given_.Give(worker.client().member().node(), PlaceOf(t, step_.value()));
    }
    worker.hybrid().Submit(now, RequestFor(now, t, worker), outbox);
  }
  NoteMove(worker);
  next_submit_ = absl::InfiniteFuture();
  for (const Tensor& tensor : tensors_) next_submit_ = std::min(next_submit_, tensor.submit_at);
  // Checks at once for operations that have already ended.
  next_ = next_submit_ < absl::InfiniteFuture() ? next_submit_ : now;
}

void GroupsWorkload::Trainer::FlushAll(absl::Time now, worker::WorkerActor& worker,
                                       Outbox& outbox) {
  phase_ = Phase::kFlush;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    worker.hybrid().Flush(now, RequestFor(now, t, worker), outbox);
  }
  next_ = now;
}

void GroupsWorkload::Trainer::EndStep(absl::Time now, worker::WorkerActor& worker) {
  if (next_submit_ < absl::InfiniteFuture()) return;
  if (phase_ == Phase::kSubmit) workload_.cluster_->simulator().Count("group_step_ended");
  if (phase_ == Phase::kFlush) workload_.finished_[name_] = worker.client().member().node();
  phase_ = Phase::kThink;
  next_ = now + workload_.think_max_ * random_.Uniform();
}

worker::TensorRequest GroupsWorkload::Trainer::RequestFor(absl::Time now, size_t t,
                                                          worker::WorkerActor& worker) {
  ++under_way_;
  deadline_ = now + Patience();
  tensors_[t].under_way = true;
  worker::TensorRequest request{.tensor = t,
                                .gradient = tensors_[t].gradient,
                                .values = tensors_[t].values,
                                .samples = samples_,
                                .deadline = deadline_};
  request.done = [this, t, &worker](absl::Time, const absl::Status& status, Outbox&) {
    Ended(t, status, worker);
  };
  return request;
}

void GroupsWorkload::Trainer::Ended(size_t t, const absl::Status& status,
                                    worker::WorkerActor& worker) {
  if (!tensors_[t].under_way) {
    workload_.violations_.Add(kName, absl::StrCat(name_, " was told twice of tensor ", t));
  }
  tensors_[t].under_way = false;
  if (--under_way_ == 0) {
    deadline_ = absl::InfiniteFuture();
    late_since_ = absl::InfiniteFuture();
  }
  if (!status.ok()) next_submit_ = absl::InfiniteFuture();
  const std::string what = absl::StrCat("step ", step_.value(), " tensor ", t);
  const NodeId node = worker.client().member().node();
  if (!status.ok()) {
    failed_ = true;
    for (uint64_t step = OldestStep(); step <= step_.value(); ++step) {
      workload_.given_.TakeBack(node, PlaceOf(t, step));
    }
    if (absl::IsCancelled(status) && Drains(worker)) {
      workload_.cluster_->simulator().Count("worker_drained");
      return;
    }
    // A distributed group breaks when it loses a member.
    const bool broke = plan().distributed() && absl::IsFailedPrecondition(status);
    if (!broke) workload_.results_.Failed(name_, what, status);
    // A group that admits or releases members may break while it does.
    if (step_.value() > plan().ordinary_steps && !plan().elastic &&
        !workload_.truth_.HistoryWasLost()) {
      workload_.violations_.Add(
          kName, absl::StrCat(what, " of ", name_,
                              ", when nothing went wrong any more: ", status.ToString()));
    }
    return;
  }
  const bool pulled = phase_ == Phase::kPull;
  if (!pulled) {
    const uint64_t lag = phase_ == Phase::kFlush ? 0 : plan().hybrid.lag;
    workload_.given_.Finish(node, PlaceOf(t, step_.value() - std::min(step_.value(), lag)));
  }
  // A member that retries a step, after a death or a loss, may find that others have its values
  // already; then it pulls them, together with later pushes of other groups.
  const worker::GroupRound round = worker.group().round();
  const bool changed = round != round_ || (plan().hybrid.lag > 0 && round_ != round_before_);
  if (changed && plan().positions() > 1) {
    if (!pulled) CheckOwnSteps(t);
    return;
  }
  // A member that is late gets the present values, which may be another step's.
  if (worker.hybrid().steps_aside() != steps_aside_) return;
  workload_.results_.Succeeded(name_,
                               {.round = round,
                                .step = pulled ? covey::Step() : worker.hybrid().step(),
                                .phase = static_cast<int>(phase_)},
                               t, tensors_[t].values);
  if (!pulled) CheckOwnSteps(t);
}

void GroupsWorkload::Trainer::NoteMove(worker::WorkerActor& worker) {
  if (step_.value() == 0 || !worker.group().ready()) return;
  const GroupId group = worker.group().id();
  const uint64_t step_now = worker.hybrid().step().value();
  const bool same_step = group == group_ && step_now == step_.value();
  if (same_step) forming_ = false;
  if (worker.group().round() == round_ && !forming_) return;
  if (same_step) return;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    for (uint64_t step = OldestStep(); step <= step_.value(); ++step) {
      const uint64_t before = step_.value() - step;
      workload_.given_.MoveAway(
          worker.client().member().node(), PlaceOf(t, step),
          {group, covey::Step(step_now - std::min(step_now, before)), tensors_[t].id});
    }
  }
}

// Where the contract promises it, a member finds its own group's steps in the values it gets.
void GroupsWorkload::Trainer::CheckOwnSteps(size_t t) {
  const Contract::Kind kind = plan().tables[t].contract.kind;
  if (!plan().distributed() && workload_.truth_.HistoryWasLost()) return;
  if (kind != Contract::Kind::kBsp && kind != Contract::Kind::kSsp) return;
  const uint64_t lag = phase_ == Phase::kFlush ? 0 : plan().hybrid.lag;
  for (uint64_t step = first_step_.value(); step + lag <= step_.value(); ++step) {
    for (size_t first = 0; first < tensors_[t].values.size(); first += plan().elements()) {
      const float value = tensors_[t].values[first + position_ * plan().steps() + step - 1];
      if (plan().distributed() ? value > 0.9999f && value < 1.0001f : value > 0) continue;
      workload_.violations_.Add(
          kName, absl::StrCat(name_, " finished step ", step_.value(), " and got ", value,
                              " for its group's step ", step, " in shard ",
                              first / plan().elements(), " of tensor ", t));
      return;
    }
  }
}

void GroupsWorkload::Trainer::CheckDeadlines(absl::Time now) {
  if (under_way_ == 0 || now <= deadline_) return;
  // A process that was paused has just begun to catch up.
  late_since_ = std::min(late_since_, now);
  if (now - late_since_ <= kSlack) return;
  workload_.violations_.Add(
      kName, absl::StrCat(under_way_, " tensors of step ", step_.value(), " of ", name_,
                          " have not ended ", absl::FormatDuration(now - deadline_),
                          " after their deadline"));
  late_since_ = absl::InfiniteFuture();
  deadline_ = absl::InfiniteFuture();
}

GroupsWorkload::GroupsWorkload(Random random, Violations& violations)
    : violations_(violations),
      plan_(DrawGroupsPlan(random.Split(1))),
      random_(random.Split(2)),
      truth_(violations, {.steps = plan_.steps(),
                          .averages = plan_.HasContract(Contract::Kind::kBsp) ||
                                      plan_.HasContract(Contract::Kind::kBuffered),
                          .uneven = plan_.elastic || plan_.members > 1,
                          .rounded = plan_.HasFormat(WireFormat::kInt8Block),
                          .given = &given_}),
      results_(violations) {}

void GroupsWorkload::Adapt(SimConfig& config) const {
  config.scheduler.workers_per_group = plan_.members;
  if (!config.quiet) config.fault_share = plan_.fault_share;
  config.all_links_fail = true;
  for (const GroupsPlan::Drain& drain : plan_.drains) {
    config.elasticity.actions.push_back({.kind = ElasticAction::Kind::kDrain,
                                         .at = config.safety * drain.at,
                                         .name = absl::StrCat("worker-", drain.rank)});
  }
  std::stable_sort(config.elasticity.actions.begin(), config.elasticity.actions.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  if (plan_.calm || config.quiet) {
    config.network.loss = 0;
    config.network.corruption = 0;
  } else {
    config.network.loss /= 100;
    config.network.corruption /= 100;
  }
  if (plan_.calm) config.network.queue_messages = kTransportQueueMessagesMax;
  if (plan_.calm) config.inbox_max = kTransportQueueMessagesMax;
}

void GroupsWorkload::AddMember(absl::Duration delay) {
  const uint32_t index = members_++;
  Random random = random_.Split(1000 + index);
  const std::string name = absl::StrCat("worker-", index);
  cluster_->AddWorker(
      {.name = name,
       .labels = absl::StrCat("zone/rack-", random.Below(2), "/host-", random.Below(3)),
       .group = plan_.group,
       .delay = delay,
       .make_script = [this, name](Random draws) {
         return std::make_unique<Trainer>(*this, name, draws);
       }});
}

void GroupsWorkload::SetUp(SimCluster& cluster) {
  cluster_ = &cluster;
  last_steps_.SetCluster(cluster);
  think_max_ =
      cluster.config().safety * (2 * plan_.haste / static_cast<double>(plan_.ordinary_steps));
  cluster.AddObserver(truth_);
  cluster.AddObserver(given_);
  for (uint32_t i = 0; i < plan_.groups * plan_.members; ++i) AddMember(absl::ZeroDuration());
  for (const double start : plan_.late_starts) AddMember(cluster.config().safety * start);
}

bool GroupsWorkload::Finished() const {
  // A member whose group broke has ended.
  return last_steps_.workers_running() == finished_.size();
}

void GroupsWorkload::Check() {
  if (finished_.size() > 1 && plan_.positions() == 1 && results_.compared() == 0) {
    violations_.Add(kName, "members finished all steps, and nothing could be compared");
  }
}

std::string GroupsWorkload::Report() const {
  return absl::StrCat(Describe(plan_), " finished=", finished_.size(),
                      " succeeded=", results_.succeeded(), " failed=", results_.failed(),
                      " compared=", results_.compared(), " reads=", truth_.reads());
}

}  // namespace

std::unique_ptr<Workload> MakeGroupsWorkload(Random random, Violations& violations) {
  return std::make_unique<GroupsWorkload>(random, violations);
}

}  // namespace covey::sim
