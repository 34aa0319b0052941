// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/counting/counting_workload.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/sim/checkers/whole_cluster.h"
#include "tests/sim/cluster/scripted_client.h"
#include "tests/sim/workloads/counting/counting_ledger.h"
#include "tests/sim/workloads/deadline_watch.h"
#include "tests/sim/workloads/expected_errors.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

// Interval at which a script checks its condition.
constexpr absl::Duration kLookAgain = absl::Milliseconds(100);

// Fillers that all clients push together, or that the auditor pushes, to empty the servers'
// buffers.
constexpr uint64_t kFillersMax = 64;
constexpr uint64_t kAuditorsFillersMax = 64;

// Without faults, no user may notice that shards move; operations must succeed within this time.
constexpr absl::Duration kQuietPatience = absl::Seconds(30);

// Clients push to random shards and whole tables, pull at times, and crash. At the end an auditor
// pushes as many fillers as it takes to empty the servers' buffers, and pulls everything.
class CountingWorkload : public Workload {
 public:
  CountingWorkload(Random random, Violations& violations);

  std::string name() const override { return std::string(kCounting); }
  uint32_t groups() const override { return 1; }
  void SetUp(SimCluster& cluster) override;
  bool Finished() const override { return audited_; }
  void Check() override;
  std::string Report() const override;

 private:
  class Pusher;
  class Auditor;

  proto::TableSpec Spec() const;
  uint64_t TakeSlot() { return next_slot_++; }
  bool HasRoomForFillers() const { return next_slot_ < pushes_ + kFillersMax; }
  // The gradient of `slot`, for the shards [first, first + count).
  std::vector<float> Gradient(uint64_t slot, uint32_t count) const;
  void Ended(const client::OperationResult& result, uint64_t slot, TableId table, uint32_t first,
             uint32_t count);

  // Constant after construction.
  Violations& violations_;
  const uint32_t clients_;
  const uint32_t shards_;
  const uint64_t pushes_;
  const uint64_t arrivals_;  // per update
  const uint64_t slots_;     // elements per shard
  const uint32_t replicas_;  // of each shard; 0 = the default
  const proto::Contract::Kind kind_;
  const double haste_;
  const absl::Duration deadline_max_;

  CountingLedger ledger_;
  uint64_t next_slot_ = 0;
  uint64_t first_filler_ = ~uint64_t{0};  // the auditor's first slot; those of clients are below
  uint64_t pushes_taken_ = 0;
  uint64_t acknowledged_ = 0;
  uint64_t failed_ = 0;
  SimCluster* cluster_ = nullptr;
  // The longest pause between two operations of a client; makes pushing last about as long as the
  // faults.
  absl::Duration think_max_;
  absl::Duration patience_min_ = absl::Milliseconds(100);
  bool audited_ = false;
  std::shared_ptr<const ClusterView> final_view_;
  std::vector<float> final_values_;
};

// One client program. Ends with its process; the next one pushes what is left.
class CountingWorkload::Pusher : public Script {
 public:
  Pusher(CountingWorkload& workload, Random random)
      : workload_(workload),
        random_(random),
        table_(workload.Spec()),
        watch_(kCounting, workload.violations_) {}

  void Step(absl::Time now, client::ClientActor& client, Outbox& outbox) override {
    watch_.Check(now);
    const proto::Table* table = table_.Advance(now, client, outbox);
    if (!table_.refusal().ok()) workload_.violations_.Add("counting", table_.refusal().ToString());
    if (table == nullptr) {
      next_ = now + kLookAgain;
      return;
    }
    while (now >= next_ && under_way_ < kConcurrency && !exhausted()) {
      next_ = now + workload_.think_max_ * random_.Uniform();
      StartOne(now, TableId(table->id()), client, outbox);
    }
    if (exhausted() && under_way_ == 0 && !flushed_) Flush(now, client, outbox);
    if (flushing_ && now >= next_filler_) Fill(now, TableId(table->id()), client, outbox);
  }
  absl::Time NextWake() const override {
    const absl::Time next =
        under_way_ < kConcurrency && !exhausted() ? next_ : absl::InfiniteFuture();
    return std::min({watch_.NextWake(), next, flushing_ ? next_filler_ : absl::InfiniteFuture()});
  }
  bool done() const override { return exhausted() && under_way_ == 0 && flushed_; }

 private:
  static constexpr int kConcurrency = 4;
  struct Memory {
    std::vector<float> gradient;
    std::vector<float> values;
  };

  bool exhausted() const { return workload_.pushes_taken_ >= workload_.pushes_; }

  void StartOne(absl::Time now, TableId table, client::ClientActor& client, Outbox& outbox) {
    const bool all = random_.Chance(0.3);
    const uint32_t first = all ? 0 : static_cast<uint32_t>(random_.Below(workload_.shards_));
    const uint32_t count =
        all ? workload_.shards_
            : 1 + static_cast<uint32_t>(random_.Below(std::min(2u, workload_.shards_ - first)));
    const bool push = random_.Chance(0.75);
    const bool pull = !push || random_.Chance(0.3);
    auto memory = std::make_shared<Memory>();
    const uint64_t slot = push ? workload_.TakeSlot() : 0;
    if (push) {
      ++workload_.pushes_taken_;
      memory->gradient = workload_.Gradient(slot, count);
    }
    if (pull) memory->values.resize(count * workload_.slots_);
    const absl::Time deadline =
        now + workload_.patience_min_ + workload_.deadline_max_ * random_.Uniform();
    const uint64_t watched = watch_.Begin(deadline);
    client::Operation operation{
        .table = table,
        .first_shard = ShardIndex(first),
        .shard_count = count,
        .gradient = memory->gradient,
        .values = memory->values,
        .deadline = deadline,
        .done = [this, watched, memory, push, slot, table, first, count](
                    absl::Time, const client::OperationResult& result, Outbox&) {
          --under_way_;
          watch_.End(watched);
          if (push && result.status.ok()) acknowledged_.push_back(slot);
          if (push || !result.status.ok()) {
            workload_.Ended(result, slot, table, first, count);
          }
        }};
    ++under_way_;
    const absl::Status status = client.engine().Start(now, std::move(operation), outbox);
    if (status.ok()) return;
    --under_way_;
    watch_.End(watched);
    workload_.violations_.Add("counting", absl::StrCat("refused at once: ", status.ToString()));
  }

  // A program ends only after all that it pushed is durable.
  void Flush(absl::Time now, client::ClientActor& client, Outbox& outbox) {
    ++under_way_;
    flushing_ = true;
    next_filler_ = workload_.arrivals_ > 1 ? now + kFillAfter : absl::InfiniteFuture();
    const absl::Time deadline = now + kFlushPatience;
    const uint64_t watched = watch_.Begin(deadline);
    client.engine().Flush(
        now, client::RequestEngine::FlushScope::kAll, deadline,
        [this, watched](absl::Time at, const absl::Status& status, Outbox&) {
          --under_way_;
          watch_.End(watched);
          Flushed(at, status);
        },
        outbox);
  }

  // A buffered push becomes durable once the buffer is full. No script waits for these pushes.
  void Fill(absl::Time now, TableId table, client::ClientActor& client, Outbox& outbox) {
    next_filler_ = now + kFillAfter;
    if (!workload_.HasRoomForFillers()) return;
    auto memory = std::make_shared<Memory>();
    memory->gradient = workload_.Gradient(workload_.TakeSlot(), workload_.shards_);
    ++under_way_;
    const absl::Status status =
        client.engine().Start(now,
                              {.table = table,
                               .gradient = memory->gradient,
                               .deadline = now + kFillAfter,
                               .done = [this, memory](absl::Time, const client::OperationResult&,
                                                      Outbox&) { --under_way_; }},
                              outbox);
    if (!status.ok()) --under_way_;
  }

  void Flushed(absl::Time now, const absl::Status& status) {
    flushing_ = false;
    if (status.ok()) {
      for (const uint64_t slot : acknowledged_) workload_.ledger_.Flushed(slot);
    }
    // The content of some shard was lost, or this client was declared dead, and pushes were lost
    // with it. It is unknown which ones.
    flushed_ = status.ok() || absl::IsDataLoss(status) || absl::IsAborted(status) ||
               !workload_.HasRoomForFillers();
    next_ = now;
    if (!IsExpectedOfFlush(status, workload_.ledger_.HistoryWasLost()))
      workload_.violations_.Add("counting", absl::StrCat("flush: ", status.ToString()));
  }

  static constexpr absl::Duration kFlushPatience = absl::Seconds(20);
  static constexpr absl::Duration kFillAfter = absl::Seconds(2);

  CountingWorkload& workload_;
  Random random_;
  TableCreation table_;
  DeadlineWatch watch_;
  std::vector<uint64_t> acknowledged_;  // slots
  bool flushed_ = false;
  bool flushing_ = false;
  absl::Time next_filler_ = absl::InfiniteFuture();
  absl::Time next_ = absl::InfinitePast();
  int under_way_ = 0;
};

// Waits until all others are done and the faults have ended.
class CountingWorkload::Auditor : public Script {
 public:
  explicit Auditor(CountingWorkload& workload) : workload_(workload), table_(workload.Spec()) {}

  void Step(absl::Time now, client::ClientActor& client, Outbox& outbox) override {
    const proto::Table* table = table_.Advance(now, client, outbox);
    if (now < next_ || under_way_ || workload_.audited_) return;
    next_ = now + kLookAgain;
    if (table == nullptr || !OthersAreGone(now, client)) return;
    quiet_since_ = std::min(quiet_since_, now);
    if (now - quiet_since_ < kLastMessage) return;
    const bool push = fillers_ + 1 < workload_.arrivals_;
    if (push && gradient_.empty()) {
      const uint64_t slot = workload_.TakeSlot();
      workload_.first_filler_ = std::min(workload_.first_filler_, slot);
      gradient_ = workload_.Gradient(slot, workload_.shards_);
    }
    values_.assign(workload_.shards_ * workload_.slots_, -1);
    under_way_ = true;
    const absl::Status status = client.engine().Start(
        now,
        {.table = TableId(table->id()),
         .gradient = push ? std::span<const float>(gradient_) : std::span<const float>(),
         .values = push ? std::span<float>() : std::span<float>(values_),
         .deadline = now + absl::Seconds(60),
         .done =
             [this, &client, push](absl::Time, const client::OperationResult& result, Outbox&) {
               under_way_ = false;
               Ended(push, result, client);
             }},
        outbox);
    if (!status.ok()) workload_.violations_.Add("counting", status.ToString());
  }
  absl::Time NextWake() const override { return under_way_ ? absl::InfiniteFuture() : next_; }
  bool done() const override { return workload_.audited_; }

 private:
  bool OthersAreGone(absl::Time now, client::ClientActor& client) const {
    if (!workload_.cluster_->healed()) return false;
    for (const auto& process : workload_.cluster_->processes()) {
      if (process->name().rfind("client-", 0) == 0 && process->running()) return false;
    }
    // A server whose death has not been noticed yet would lose the values.
    return now - workload_.cluster_->healed_at() > kDeathsTake &&
           WhyNotWhole(client.member().view()->proto()).empty();
  }

  void Ended(bool push, const client::OperationResult& result, client::ClientActor& client) {
    if (!result.status.ok()) {
      // A server may have been declared dead just before the faults ended; then retry once.
      if (!IsExpected(result.status)) {
        workload_.violations_.Add("counting", result.status.ToString());
      }
      gradient_.clear();
      fillers_ = 0;
      return;
    }
    if (push) {
      ++fillers_;
      gradient_.clear();
      return;
    }
    workload_.final_view_ = client.member().view();
    workload_.final_values_ = values_;
    workload_.audited_ = true;
  }

  // Longer than the slowest message: whatever a client sent before it crashed has arrived.
  static constexpr absl::Duration kLastMessage = absl::Seconds(10);
  // Time within which the scheduler knows of each death.
  static constexpr absl::Duration kDeathsTake = absl::Seconds(60);

  CountingWorkload& workload_;
  TableCreation table_;
  absl::Time next_ = absl::InfinitePast();
  absl::Time quiet_since_ = absl::InfiniteFuture();
  bool under_way_ = false;
  uint64_t fillers_ = 0;
  std::vector<float> gradient_;
  std::vector<float> values_;
};

CountingWorkload::CountingWorkload(Random random, Violations& violations)
    : violations_(violations),
      clients_(1 + static_cast<uint32_t>(random.Below(5))),
      shards_(1 + static_cast<uint32_t>(random.Below(6))),
      pushes_(40 + random.Below(300)),
      arrivals_(random.Chance(0.5) ? 1 : 2 + random.Below(3)),
      // Room for the auditor's fillers, which it may have to push again.
      slots_((pushes_ + kFillersMax + kAuditorsFillersMax + 15) / 16 * 16),
      replicas_(static_cast<uint32_t>(random.Below(4))),
      kind_(arrivals_ > 1 ? proto::Contract::BUFFERED
                          : std::array{proto::Contract::ASYNC, proto::Contract::SSP,
                                       proto::Contract::BUFFERED}[random.Below(3)]),
      haste_(0.1 + random.Uniform()),
      deadline_max_(DrawDuration(random, absl::Seconds(1), absl::Seconds(30))),
      ledger_(violations, arrivals_) {}

proto::TableSpec CountingWorkload::Spec() const {
  proto::TableSpec spec;
  spec.set_name("counts");
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(shards_);
  spec.add_shape(slots_);
  spec.mutable_learning_rate()->set_base(1);
  spec.mutable_contract()->set_kind(kind_);
  if (kind_ == proto::Contract::BUFFERED) spec.mutable_contract()->set_buffer(arrivals_);
  spec.set_shard_bytes(slots_ * sizeof(float));
  SetReplicas(replicas_, spec);
  return spec;
}

std::vector<float> CountingWorkload::Gradient(uint64_t slot, uint32_t count) const {
  // An update is divided by its samples, one per arrival; so this gradient adds exactly 1.
  std::vector<float> gradient(count * slots_);
  for (uint32_t i = 0; i < count; ++i) gradient[i * slots_ + slot] = -static_cast<float>(arrivals_);
  return gradient;
}

void CountingWorkload::SetUp(SimCluster& cluster) {
  cluster_ = &cluster;
  think_max_ = cluster.config().safety * (2 * haste_ * clients_ / static_cast<double>(pushes_));
  if (cluster.config().quiet) patience_min_ = kQuietPatience;
  cluster.AddObserver(ledger_);
  for (uint32_t i = 0; i < clients_; ++i) {
    cluster.AddClient(absl::StrCat("client-", i), proto::CLIENT,
                      [this](Random random) { return std::make_unique<Pusher>(*this, random); });
  }
  cluster.AddClient("auditor", proto::CLIENT,
                    [this](Random) { return std::make_unique<Auditor>(*this); });
}

void CountingWorkload::Ended(const client::OperationResult& result, uint64_t slot, TableId table,
                             uint32_t first, uint32_t count) {
  if (!IsExpected(result.status)) violations_.Add("counting", result.status.ToString());
  if (!result.status.ok()) {
    ++failed_;
    if (!cluster_->config().quiet) return;
    violations_.Add("counting",
                    absl::StrCat("failed although nothing went wrong: ", result.status.ToString()));
    return;
  }
  ++acknowledged_;
  for (uint32_t i = first; i < first + count; ++i) {
    if (!ledger_.WasAcknowledged({table, ShardIndex(i)}, slot, result.durable)) {
      violations_.Add(
          "counting",
          absl::StrCat("the client was told that slot ", slot, " is in shard ", i,
                       result.durable ? " for good" : "", ", but no server had said so"));
    }
  }
}

void CountingWorkload::Check() {
  const proto::Table& table = *final_view_->FindTable(Spec().name());
  for (const proto::Shard& shard : table.shards()) {
    ledger_.CheckFinal(
        {{TableId(table.id()), ShardIndex(shard.index())}, shard.generation()},
        std::span<const float>(final_values_).subspan(shard.first_element(), shard.element_count()),
        first_filler_);
  }
}

std::string CountingWorkload::Report() const {
  return absl::StrCat("clients=", clients_, " shards=", shards_, " arrivals=", arrivals_,
                      " replicas=", replicas_, " contract=", proto::Contract::Kind_Name(kind_),
                      " pushed=", pushes_taken_, " acknowledged=", acknowledged_,
                      " failed=", failed_);
}

}  // namespace

std::unique_ptr<Workload> MakeCountingWorkload(Random random, Violations& violations) {
  return std::make_unique<CountingWorkload>(random, violations);
}

}  // namespace covey::sim
