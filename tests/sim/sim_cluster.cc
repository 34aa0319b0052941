#include "tests/sim/sim_cluster.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/cluster/view.h"
#include "scheduler/scheduler_actor.h"
#include "scheduler/scheduler_log.h"
#include "server/server_actor.h"
#include "server/shard_actor.h"

namespace covey::sim {
namespace {

constexpr absl::string_view kSchedulerName = "scheduler";
constexpr absl::Duration kRestartDelay = absl::Milliseconds(500);

class SchedulerProgram : public Program {
 public:
  SchedulerProgram(Simulator& simulator, const scheduler::Config& config, SimDisk& disk) {
    const std::string& log = disk.content();
    auto recovered =
        scheduler::RecoverLog({reinterpret_cast<const uint8_t*>(log.data()), log.size()});
    COVEY_CHECK(recovered.ok());
    disk.Truncate(recovered->intact_bytes);
    if (recovered->newest) simulator.Count("scheduler_recovered");
    actor_ = std::make_unique<scheduler::SchedulerActor>(config, std::move(recovered->newest));
  }
  std::vector<Actor*> loops() override { return {actor_.get()}; }
  NodeId node() const override { return kSchedulerNode; }
  Epoch epoch() const override { return Epoch(actor_->published().epoch()); }

 private:
  std::unique_ptr<scheduler::SchedulerActor> actor_;
};

class ServerProgram : public Program {
 public:
  ServerProgram(const Member::Options& member, uint32_t data_loops) : control_({.member = member}) {
    for (uint32_t i = 0; i < data_loops; ++i) {
      data_.push_back(std::make_unique<server::ShardActor>(server::ShardActor::Options()));
    }
  }
  std::vector<Actor*> loops() override {
    std::vector<Actor*> loops = {&control_};
    for (const auto& data : data_) loops.push_back(data.get());
    return loops;
  }
  NodeId node() const override { return control_.member().node(); }
  Epoch epoch() const override { return control_.member().view()->epoch(); }
  Outcome outcome() const override {
    return control_.member().state() == Member::State::kFailed ? Outcome::kFailed
                                                               : Outcome::kRunning;
  }

 private:
  server::ServerActor control_;
  std::vector<std::unique_ptr<server::ShardActor>> data_;
};

}  // namespace

SimCluster::SimCluster(Simulator& simulator, const SimConfig& config)
    : simulator_(simulator), config_(config), network_(simulator, config.network) {
  AddScheduler();
  for (uint32_t i = 0; i < config_.servers; ++i) AddServer(i);
}

Process::Options SimCluster::OptionsFor(std::string name, std::vector<bool> listening) {
  const size_t index = processes_.size();
  return {.name = std::move(name),
          .host = HostId(static_cast<uint32_t>(index)),
          .job = JobFingerprint(config_.scheduler.job_name),
          .listening = std::move(listening),
          .reuse_endpoints = config_.reuse_endpoints,
          .call_cost_max = config_.call_cost_max,
          .inbox_max = config_.inbox_max,
          .scheduler_endpoint = absl::StrCat("sim://", kSchedulerName, "/0"),
          .disk_delay_max = config_.disk_delay_max,
          .ended = [this, index](Program::Outcome outcome) {
            if (outcome == Program::Outcome::kDone) {
              done_[index] = true;
              return;
            }
            simulator_.Count("process_gave_up");
            simulator_.After(kRestartDelay, [this, index] {
              if (!processes_[index]->running()) processes_[index]->Start();
            });
          }};
}

Process& SimCluster::Add(Process::Options options, Process::Factory factory) {
  done_.push_back(false);
  delays_.push_back(absl::ZeroDuration());
  processes_.push_back(std::make_unique<Process>(simulator_, network_, observers_,
                                                 std::move(options), std::move(factory)));
  return *processes_.back();
}

void SimCluster::AddScheduler() {
  Process::Options options = OptionsFor(std::string(kSchedulerName), {true});
  options.reuse_endpoints = true;
  Add(std::move(options), [this](const Process::Birth& birth) {
    return std::make_unique<SchedulerProgram>(simulator_, config_.scheduler, birth.disk);
  });
}

void SimCluster::AddServer(uint32_t index) {
  std::vector<bool> listening(1 + config_.data_loops, true);
  listening[0] = false;
  Add(OptionsFor(absl::StrCat("server-", index), std::move(listening)),
      [this, index](const Process::Birth& birth) {
        Member::Options member = MemberOptions(proto::SERVER, birth);
        member.rank = static_cast<int>(index);
        return std::make_unique<ServerProgram>(member, config_.data_loops);
      });
}

Process& SimCluster::AddClient(std::string name, proto::Role role,
                               std::function<std::unique_ptr<Script>(Random)> make_script) {
  return Add(OptionsFor(std::move(name), {false}),
             [this, role, make_script = std::move(make_script)](const Process::Birth& birth) {
               return std::make_unique<ScriptedClient>(ClientOptions(role, birth),
                                                       make_script(birth.random.Split(3)));
             });
}

Process& SimCluster::AddWorker(Worker worker) {
  const absl::Duration delay = worker.delay;
  Process::Options process_options = OptionsFor(worker.name, {true});
  Process& process = Add(
      std::move(process_options), [this, worker = std::move(worker)](const Process::Birth& birth) {
        client::ClientActor::Options options = ClientOptions(proto::WORKER, birth);
        options.member.labels = worker.labels;
        return std::make_unique<ScriptedWorker>(options, worker.group,
                                                worker.make_script(birth.random.Split(3)));
      });
  delays_.back() = delay;
  return process;
}

Process& SimCluster::AddLateClient(absl::Duration delay, std::string name, proto::Role role,
                                   std::function<std::unique_ptr<Script>(Random)> make_script) {
  Process& process = AddClient(std::move(name), role, std::move(make_script));
  delays_.back() = delay;
  return process;
}

Member::Options SimCluster::MemberOptions(proto::Role role, const Process::Birth& birth) const {
  Member::Options member = config_.member;
  member.role = role;
  member.endpoints = birth.endpoints;
  member.seed = birth.random.Split(1).Next();
  return member;
}

client::ClientActor::Options SimCluster::ClientOptions(proto::Role role,
                                                       const Process::Birth& birth) const {
  client::ClientActor::Options options{.member = MemberOptions(role, birth),
                                       .client = config_.client};
  options.client.incarnation = birth.incarnation;
  options.client.seed = birth.random.Split(2).Next();
  return options;
}

void SimCluster::Start() {
  for (size_t i = 0; i < processes_.size(); ++i) {
    if (delays_[i] == absl::ZeroDuration()) {
      processes_[i]->Start();
      continue;
    }
    simulator_.After(delays_[i], [this, i] {
      if (!processes_[i]->running() && !done_[i]) processes_[i]->Start();
    });
  }
}

std::vector<std::string> SimCluster::names() const {
  std::vector<std::string> names;
  for (const auto& process : processes_) names.push_back(process->name());
  return names;
}

void SimCluster::Schedule(const FaultPlan& plan) {
  for (const Fault& fault : plan) {
    simulator_.After(fault.at, [this, fault] {
      if (healed_) return;
      Begin(fault);
      active_.push_back(fault);
      simulator_.After(fault.duration, [this, fault] {
        const auto same = [&fault](const Fault& other) {
          return other.kind == fault.kind && other.at == fault.at && other.target == fault.target;
        };
        const auto found = std::find_if(active_.begin(), active_.end(), same);
        if (found == active_.end()) return;  // Healed meanwhile.
        active_.erase(found);
        End(fault);
      });
    });
  }
}

void SimCluster::Both(HostId a, HostId b, void (SimNetwork::*change)(HostId, HostId)) {
  (network_.*change)(a, b);
  (network_.*change)(b, a);
}

void SimCluster::Begin(const Fault& fault) {
  Process& target = *processes_[fault.target];
  const HostId a = target.host();
  const HostId b = processes_[fault.other]->host();
  simulator_.Count(absl::StrCat("fault_", KindName(fault.kind)));
  if (simulator_.tracing()) simulator_.Trace(absl::StrCat("fault ", Describe(fault, names())));
  switch (fault.kind) {
    case Fault::Kind::kCrash:
      return target.Crash();
    case Fault::Kind::kPause:
      return target.Pause();
    case Fault::Kind::kSlow:
      return target.SetSlowness(100);
    case Fault::Kind::kPartition:
      return Both(a, b, &SimNetwork::Block);
    case Fault::Kind::kOneWayPartition:
      return network_.Block(a, b);
    case Fault::Kind::kClog:
      return network_.Clog(a, b);
    case Fault::Kind::kIsolation:
      for (const auto& other : processes_) Both(a, other->host(), &SimNetwork::Block);
      return;
    case Fault::Kind::kDisconnect:
      return network_.Disconnect(a, b);
  }
}

void SimCluster::End(const Fault& fault) {
  Process& target = *processes_[fault.target];
  const HostId a = target.host();
  const HostId b = processes_[fault.other]->host();
  switch (fault.kind) {
    case Fault::Kind::kCrash:
      if (!target.running() && !done_[fault.target]) target.Start();
      return;
    case Fault::Kind::kPause:
      return target.Resume();
    case Fault::Kind::kSlow:
      return target.SetSlowness(1);
    case Fault::Kind::kPartition:
      return Both(a, b, &SimNetwork::Unblock);
    case Fault::Kind::kOneWayPartition:
      return network_.Unblock(a, b);
    case Fault::Kind::kClog:
      return network_.Unclog(a, b);
    case Fault::Kind::kIsolation:
      for (const auto& other : processes_) Both(a, other->host(), &SimNetwork::Unblock);
      return;
    case Fault::Kind::kDisconnect:
      return;
  }
}

void SimCluster::Heal() {
  healed_ = true;
  simulator_.Trace("heal");
  network_.Heal();
  for (const Fault& fault : std::exchange(active_, {})) End(fault);
  for (size_t i = 0; i < processes_.size(); ++i) {
    processes_[i]->Resume();
    if (!processes_[i]->running() && !done_[i]) processes_[i]->Start();
  }
}

}  // namespace covey::sim
