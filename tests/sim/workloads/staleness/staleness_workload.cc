// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/staleness/staleness_workload.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/sim/checkers/whole_cluster.h"
#include "tests/sim/cluster/scripted_client.h"
#include "tests/sim/workloads/deadline_watch.h"
#include "tests/sim/workloads/expected_errors.h"
#include "tests/sim/workloads/last_steps.h"
#include "tests/sim/workloads/truth/staleness_truth.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

// Interval at which a script checks its condition.
constexpr absl::Duration kLookAgain = absl::Milliseconds(100);

constexpr uint32_t kGroupsMax = 4;
// The most groups that a run can have: late ones and those of returned workers included.
constexpr uint32_t kPositionsMax = 12;
constexpr uint32_t kLateWorkersMax = 3;
// After the fault phase every remaining group takes this many further steps, which must succeed.
constexpr uint64_t kLastSteps = 3;

// Groups of one member train at different speeds: push a step, read back, continue. Some join late,
// some leave early; the table's contract may be switched meanwhile. Each step is recognizable in
// the values, so StalenessTruth knows which steps each reader has seen.
class StalenessWorkload : public Workload {
 public:
  StalenessWorkload(Random random, absl::string_view kind, Violations& violations);

  std::string name() const override { return std::string(kStaleness); }
  uint32_t groups() const override { return groups_; }
  bool is_elastic() const override { return elastic_; }
  void SetUp(SimCluster& cluster) override;
  bool Finished() const override;
  void Check() override;
  std::string Report() const override;

 private:
  class Trainer;
  class Operator;

  proto::TableSpec Spec() const;
  uint64_t elements() const { return (kPositionsMax * steps() + 15) / 16 * 16; }
  uint64_t steps() const { return steps_ + kLastSteps; }
  // No faults, and no group has to wait for others.
  bool MayNotFail() const { return cluster_->config().quiet && !waits_for_steps_; }
  // Under bsp and local, a shard that was lost with its server waits for the steps that some groups
  // had pushed before and will not push again: the job has to be restarted.
  bool IsBeyondRepair(absl::Time now) {
    return waits_for_steps_ && truth_.HistoryWasLost() && last_steps_.EveryDeathIsNoticed(now);
  }

  // Constant after construction.
  Violations& violations_;
  const uint32_t groups_;
  const uint32_t shards_;
  const uint64_t steps_;
  const Contract contract_;
  // The contracts that the table is switched to, in this order.
  const std::vector<Contract> switches_;
  const bool elastic_;
  const std::vector<double> late_starts_;  // as fractions of the fault phase
  // Some contract combines all groups' pushes for a step into one update.
  const bool waits_for_steps_;
  const double haste_;
  const absl::Duration deadline_max_;
  const uint32_t replicas_;  // of each shard; 0 = the default

  StalenessTruth truth_;
  SimCluster* cluster_ = nullptr;
  absl::Duration think_max_;
  std::map<GroupId, uint64_t> begun_;  // last step, by group
  LastSteps last_steps_;
  std::set<GroupId> finished_;  // groups that have finished all steps
  uint64_t succeeded_ = 0;
  uint64_t failed_ = 0;
  uint64_t joined_late_ = 0;  // trainers that began after step 1
  uint64_t switched_ = 0;
};

// The program of a group's only member.
class StalenessWorkload::Trainer : public Script {
 public:
  Trainer(StalenessWorkload& workload, Random random)
      : workload_(workload),
        random_(random),
        table_(workload.Spec()),
        watch_(kStaleness, workload.violations_),
        think_max_(workload.think_max_ * (0.3 + random_.Uniform())),
        leaves_early_(random_.Chance(0.25)) {}

  void Step(absl::Time now, client::ClientActor& client, Outbox& outbox) override {
    watch_.Check(now);
    const proto::Table* table = table_.Advance(now, client, outbox);
    if (!table_.refusal().ok()) workload_.violations_.Add("staleness", table_.refusal().ToString());
    const ClusterView& view = *client.member().view();
    const proto::Group* group = view.GroupOf(client.member().node());
    if (group == nullptr) {
      // A worker that is late, or has returned, waits for a group, but not forever.
      done_ = done_ || workload_.last_steps_.EveryDeathIsNoticed(now);
      next_ = now + kLookAgain;
      return;
    }
    if (group->state() != proto::Group::ACTIVE) done_ = true;
    gives_way_ = gives_way_ || !MayTrain(client, *group);
    if (gives_way_ && !done_) return GiveWay(now, client, outbox);
    if (done_ || under_way_ || now < next_) return;
    if (step_ == 0) Join(*group);
    next_ = now + kLookAgain;
    if (table == nullptr) return;
    const bool has_left = step_ >= workload_.steps_ && !again_ && leaves_early_;
    if (has_left || workload_.IsBeyondRepair(now)) {
      done_ = true;
      return;
    }
    if (step_ >= workload_.steps_ && !again_ &&
        !workload_.last_steps_.MayBegin(now, GroupId(group->id()), view)) {
      return;
    }
    if (step_ >= workload_.steps() && !again_) {
      workload_.finished_.insert(GroupId(group->id()));
      next_ = absl::InfiniteFuture();
      return;
    }
    if (!again_) ++step_;
    workload_.begun_[GroupId(group->id())] = step_;
    client.member().progress().set_step(step_);
    Push(now, *table, *group, client, outbox);
  }
  absl::Time NextWake() const override {
    return std::min(watch_.NextWake(), under_way_ || done_ ? absl::InfiniteFuture() : next_);
  }
  bool done() const override { return done_; }

 private:
  // Only the first member trains for its group; and the values have room for a limited number of
  // groups.
  bool MayTrain(client::ClientActor& client, const proto::Group& group) const {
    return group.members(0) == client.member().node().value() &&
           workload_.truth_.PositionOf(GroupId(group.id())) < kPositionsMax;
  }

  // Another member continues with the group. Only this client can resend its own pushes to a server
  // that takes over, so it stays, as an ending program does, until they are durable or no server
  // dies any more.
  void GiveWay(absl::Time now, client::ClientActor& client, Outbox& outbox) {
    next_ = absl::InfiniteFuture();
    if (flushing_) return;
    flushing_ = true;
    const absl::Time deadline = now + kFlushPatience;
    const uint64_t watched = watch_.Begin(deadline);
    client.engine().Flush(
        now, client::RequestEngine::FlushScope::kAll, deadline,
        [this, watched](absl::Time at, const absl::Status& status, Outbox&) {
          watch_.End(watched);
          GaveWay(at, status);
        },
        outbox);
  }

  void GaveWay(absl::Time now, const absl::Status& flushed) {
    flushing_ = false;
    next_ = now;
    done_ = !absl::IsDeadlineExceeded(flushed) || workload_.last_steps_.EveryDeathIsNoticed(now);
    if (!IsExpectedOfFlush(flushed, workload_.truth_.HistoryWasLost())) {
      workload_.violations_.Add("staleness", absl::StrCat("flush: ", flushed.ToString()));
    }
  }

  // A late group begins at its first step. A new member of a group continues at the last begun
  // step, whose push by the previous member may not have arrived.
  void Join(const proto::Group& group) {
    const uint64_t begun = workload_.begun_[GroupId(group.id())];
    step_ = std::max(begun, std::max<uint64_t>(1, group.first_step()) - 1);
    again_ = begun > 0;
    if (step_ > 0) ++workload_.joined_late_;
  }

  void Push(absl::Time now, const proto::Table& table, const proto::Group& group,
            client::ClientActor& client, Outbox& outbox) {
    const uint64_t element =
        workload_.truth_.PositionOf(GroupId(group.id())) * workload_.steps() + step_ - 1;
    gradient_.assign(workload_.shards_ * workload_.elements(), 0);
    for (uint32_t i = 0; i < workload_.shards_; ++i) {
      gradient_[i * workload_.elements() + element] = -1;
    }
    values_.assign(gradient_.size(), 0);
    const bool pull_too = random_.Chance(0.6);
    client::Operation push{
        .table = TableId(table.id()),
        .gradient = gradient_,
        .group = client::GroupIdentity{GroupId(group.id()), group.generation(), covey::Step(step_)},
        .deadline = Deadline(now)};
    if (pull_too) {
      push.values = values_;
      push.read = Bound(group);
    }
    push.done = [this, &client, pull_too](absl::Time at, const client::OperationResult& result,
                                          Outbox& out) {
      Pushed(at, result, pull_too, client, out);
    };
    Start(now, std::move(push), client, outbox);
  }

  void Pushed(absl::Time now, const client::OperationResult& result, bool pulled,
              client::ClientActor& client, Outbox& outbox) {
    under_way_ = false;
    const proto::Group* group = client.member().view()->GroupOf(client.member().node());
    if (group == nullptr) return;
    // Under bsp and local no group may skip a step, since the others would wait for it. The same
    // push is sent again.
    again_ = !result.status.ok() && (workload_.waits_for_steps_ || random_.Chance(0.5));
    if (!result.status.ok() && !again_) {
      workload_.truth_.GaveUp(GroupId(group->id()), covey::Step(step_));
    } else if (result.status.ok() && !pulled) {
      const proto::Table* table = client.member().view()->FindTable(workload_.Spec().name());
      client::Operation pull{.table = TableId(table->id()),
                             .values = values_,
                             .read = Bound(*group),
                             .deadline = Deadline(now)};
      pull.done = [this](absl::Time at, const client::OperationResult& read, Outbox&) {
        Ended(at, read.status);
      };
      return Start(now, std::move(pull), client, outbox);
    }
    Ended(now, result.status);
  }

  void Start(absl::Time now, client::Operation operation, client::ClientActor& client,
             Outbox& outbox) {
    under_way_ = true;
    const uint64_t watched = watch_.Begin(operation.deadline);
    operation.done = [this, watched, done = std::move(operation.done)](
                         absl::Time at, const client::OperationResult& result, Outbox& out) {
      watch_.End(watched);
      done(at, result, out);
    };
    const absl::Status status = client.engine().Start(now, std::move(operation), outbox);
    if (status.ok()) return;
    watch_.End(watched);
    workload_.violations_.Add("staleness", absl::StrCat("refused at once: ", status.ToString()));
    done_ = true;
  }

  void Ended(absl::Time now, const absl::Status& status) {
    under_way_ = false;
    next_ = now + think_max_ * random_.Uniform();
    status.ok() ? ++workload_.succeeded_ : ++workload_.failed_;
    const bool must_succeed = step_ > workload_.steps_ || workload_.MayNotFail();
    if (!IsExpected(status) || (!status.ok() && must_succeed)) {
      workload_.violations_.Add("staleness", absl::StrCat("step ", step_, ": ", status.ToString()));
    }
  }

  absl::Time Deadline(absl::Time now) {
    const bool last = step_ > workload_.steps_;
    return now + (last || workload_.MayNotFail()
                      ? absl::Seconds(60)
                      : absl::Milliseconds(200) + workload_.deadline_max_ * random_.Uniform());
  }

  client::ReadBound Bound(const proto::Group& group) {
    client::ReadBound bound{.step = covey::Step(step_), .group = GroupId(group.id())};
    // A full buffer may be a condition of such a bound, and the last steps must not wait for one.
    if (step_ <= workload_.steps_ && !workload_.MayNotFail() && random_.Chance(0.1))
      bound.max_staleness = random_.Below(4);
    return bound;
  }

  static constexpr absl::Duration kFlushPatience = absl::Seconds(20);

  StalenessWorkload& workload_;
  Random random_;
  TableCreation table_;
  DeadlineWatch watch_;
  const absl::Duration think_max_;
  const bool leaves_early_;
  uint64_t step_ = 0;
  bool again_ = false;  // the push of step_ has failed
  absl::Time next_ = absl::InfinitePast();
  bool under_way_ = false;
  bool gives_way_ = false;  // to another member of its group, for good
  bool flushing_ = false;
  bool done_ = false;
  std::vector<float> gradient_;
  std::vector<float> values_;
};

// Changes the table's contract while the groups train.
class StalenessWorkload::Operator : public Script {
 public:
  Operator(StalenessWorkload& workload, Random random) : workload_(workload), random_(random) {}

  void Step(absl::Time now, client::ClientActor& client, Outbox& outbox) override {
    if (under_way_ || done() || now < next_) return;
    if (next_ > absl::InfinitePast()) Switch(now, client, outbox);
    next_ = now + workload_.cluster_->config().safety * random_.Uniform();
  }
  absl::Time NextWake() const override { return under_way_ ? absl::InfiniteFuture() : next_; }
  bool done() const override { return next_switch_ == workload_.switches_.size(); }

 private:
  void Switch(absl::Time now, client::ClientActor& client, Outbox& outbox) {
    under_way_ = true;
    proto::Envelope request;
    proto::SetContractRequest& body = *request.mutable_set_contract_request();
    body.set_name(workload_.Spec().name());
    *body.mutable_contract() = ContractToProto(workload_.switches_[next_switch_]);
    client.control().Start(
        now, std::move(request), now + absl::Seconds(10),
        [this](absl::Time, const absl::Status& status, const proto::Envelope*, Outbox&) {
          under_way_ = false;
          if (status.ok()) ++workload_.switched_;
          if (status.ok() || absl::IsInvalidArgument(status)) {
            // Invalid argument: a switch to bsp after all groups have gone.
            ++next_switch_;
          } else if (status.code() != absl::StatusCode::kNotFound && !IsExpected(status)) {
            workload_.violations_.Add("staleness", absl::StrCat("switch: ", status.ToString()));
          }
        },
        outbox);
  }

  StalenessWorkload& workload_;
  Random random_;
  size_t next_switch_ = 0;
  absl::Time next_ = absl::InfinitePast();
  bool under_way_ = false;
};

Contract DrawContract(Random& random, uint32_t groups, absl::string_view kind) {
  if (kind.empty()) kind = kContractKinds[random.Below(std::size(kContractKinds))];
  if (kind == "bsp") return {.kind = Contract::Kind::kBsp};
  if (kind == "ssp") return {.kind = Contract::Kind::kSsp, .staleness = random.Below(4)};
  if (kind == "async") return {.kind = Contract::Kind::kAsync};
  if (kind == "local") {
    Contract contract{.kind = Contract::Kind::kLocal, .quorum = random.Below(groups + 1)};
    if (random.Chance(0.7)) contract.grace = absl::Milliseconds(1 + random.Below(2000));
    return contract;
  }
  // With more arrivals than groups, a group would wait forever once the others are done.
  Contract contract{.kind = Contract::Kind::kBuffered, .buffer = random.Below(groups + 1)};
  if (random.Chance(0.3)) contract.staleness_cut = 1 + random.Below(6);
  return contract;
}

std::vector<Contract> DrawSwitches(Random& random, uint32_t groups, const Contract& first) {
  std::vector<Contract> switches;
  if (first.kind == Contract::Kind::kLocal || !random.Chance(0.4)) return switches;
  const uint64_t count = 1 + random.Below(3);
  while (switches.size() < count) {
    const Contract contract = DrawContract(random, groups, "");
    if (contract.kind != Contract::Kind::kLocal) switches.push_back(contract);
  }
  return switches;
}

// Start times, as fractions of the fault phase.
std::vector<double> DrawLateStarts(Random& random) {
  std::vector<double> starts;
  const uint64_t count = random.Below(kLateWorkersMax + 1);
  for (uint64_t i = 0; i < count; ++i) starts.push_back(0.05 + 0.9 * random.Uniform());
  return starts;
}

bool IsAmong(Contract::Kind kind, const Contract& first, const std::vector<Contract>& others) {
  return first.kind == kind ||
         std::any_of(others.begin(), others.end(),
                     [kind](const Contract& contract) { return contract.kind == kind; });
}

bool HasCut(const Contract& contract) { return contract.staleness_cut != 0; }

StalenessWorkload::StalenessWorkload(Random random, absl::string_view kind, Violations& violations)
    : violations_(violations),
      groups_(2 + static_cast<uint32_t>(random.Below(kGroupsMax - 1))),
      shards_(1 + static_cast<uint32_t>(random.Below(4))),
      steps_(6 + random.Below(40)),
      contract_(DrawContract(random, groups_, kind)),
      switches_(DrawSwitches(random, groups_, contract_)),
      elastic_(random.Chance(0.7)),
      late_starts_(elastic_ ? DrawLateStarts(random) : std::vector<double>()),
      waits_for_steps_(IsAmong(Contract::Kind::kBsp, contract_, switches_) ||
                       contract_.kind == Contract::Kind::kLocal),
      haste_(0.1 + random.Uniform()),
      deadline_max_(DrawDuration(random, absl::Seconds(1), absl::Seconds(10))),
      replicas_(static_cast<uint32_t>(random.Below(4))),
      truth_(violations, {.steps = steps(),
                          .averages = waits_for_steps_ ||
                                      IsAmong(Contract::Kind::kBuffered, contract_, switches_),
                          .discards = HasCut(contract_) ||
                                      std::any_of(switches_.begin(), switches_.end(), HasCut)}) {}

proto::TableSpec StalenessWorkload::Spec() const {
  proto::TableSpec spec;
  spec.set_name("steps");
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(shards_);
  spec.add_shape(elements());
  spec.mutable_learning_rate()->set_base(1);
  *spec.mutable_contract() = ContractToProto(contract_);
  if (contract_.kind == Contract::Kind::kLocal) {
    spec.mutable_inner_optimizer()->set_kind(proto::Optimizer::SGD);
    spec.mutable_inner_learning_rate()->set_base(1);
  }
  spec.set_shard_bytes(elements() * sizeof(float));
  SetReplicas(replicas_, spec);
  return spec;
}

void StalenessWorkload::SetUp(SimCluster& cluster) {
  cluster_ = &cluster;
  last_steps_.SetCluster(cluster);
  think_max_ = cluster.config().safety * (2 * haste_ / static_cast<double>(steps_));
  cluster.AddObserver(truth_);
  for (uint32_t i = 0; i < groups_; ++i) {
    cluster.AddClient(absl::StrCat("worker-", i), proto::WORKER,
                      [this](Random random) { return std::make_unique<Trainer>(*this, random); });
  }
  for (size_t i = 0; i < late_starts_.size(); ++i) {
    cluster.AddLateClient(
        cluster.config().safety * late_starts_[i], absl::StrCat("worker-", groups_ + i),
        proto::WORKER, [this](Random random) { return std::make_unique<Trainer>(*this, random); });
  }
  if (switches_.empty()) return;
  cluster.AddClient("operator", proto::CLIENT,
                    [this](Random random) { return std::make_unique<Operator>(*this, random); });
}

bool StalenessWorkload::Finished() const {
  // A trainer whose group broke, or that left early, has ended.
  return last_steps_.workers_running() == finished_.size();
}

void StalenessWorkload::Check() {
  // The last steps read, so a successful run has been checked.
  if (!finished_.empty() && truth_.reads() == 0) {
    violations_.Add("staleness", "groups finished all steps, and nobody has read anything");
  }
}

std::string StalenessWorkload::Report() const {
  return absl::StrCat("groups=", groups_, " shards=", shards_, " steps=", steps_,
                      " replicas=", replicas_, " contract=", ContractName(contract_),
                      " elastic=", elastic_, " late=", late_starts_.size(),
                      " joined_late=", joined_late_, " switched=", switched_,
                      " succeeded=", succeeded_, " failed=", failed_, " reads=", truth_.reads());
}

}  // namespace

std::unique_ptr<Workload> MakeStalenessWorkload(Random random, absl::string_view kind,
                                                Violations& violations) {
  return std::make_unique<StalenessWorkload>(random, kind, violations);
}

}  // namespace covey::sim
