// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/cluster/sim_cluster.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/cluster/view.h"
#include "common/snapshot/snapshot_reader.h"
#include "tests/sim/cluster/scheduler_program.h"
#include "tests/sim/cluster/server_program.h"

namespace covey::sim {
namespace {

constexpr absl::string_view kSchedulerName = "scheduler";
constexpr absl::Duration kRestartDelay = absl::Milliseconds(500);
constexpr HostId kSchedulerHost{0};
// Delay after the end of a process, or of its connection.
constexpr absl::Duration kLossIsToldAfter = absl::Milliseconds(300);
constexpr absl::Duration kProbePatience = absl::Milliseconds(250);
// Random streams of the draws that belong to no process, and of the clocks.
constexpr uint64_t kOwnDraws = uint64_t{1} << 32;
constexpr uint64_t kClockDraws = uint64_t{1} << 33;
// Of SimConfig::small_limits: a few pushes.
constexpr size_t kSmallQueuedBytes = 16 << 10;
// That something between two machines refuses a connection to a process that lives.
constexpr double kRefusedOnTheWay = 0.2;
// The node that a hostile process without a registration claims to be: no view ever names it.
constexpr NodeId kNobody{(uint64_t{1} << 63) + 1};

// Takes part in nothing.
class IdleScript : public Script {
 public:
  void Step(absl::Time, client::ClientActor&, Outbox&) override {}
  absl::Time NextWake() const override { return absl::InfiniteFuture(); }
  bool done() const override { return false; }
};

// Only there for its sockets.
class IdleProgram : public Actor, public Program {
 public:
  void Receive(absl::Time, const Message&, Outbox&) override {}
  void Wake(absl::Time, Outbox&) override {}
  absl::Time NextWake() const override { return absl::InfiniteFuture(); }
  std::vector<Actor*> loops() override { return {this}; }
  NodeId node() const override { return NodeId(); }
  Epoch epoch() const override { return Epoch(); }
};

}  // namespace

SimCluster::SimCluster(Simulator& simulator, const SimConfig& config)
    : simulator_(simulator),
      config_(config),
      scheduler_(config.scheduler),
      network_(simulator, config.network),
      store_(simulator, config.store),
      log_(simulator, config.log,
           [this] {
             processes_[0]->Crash();
             simulator_.After(kRestartDelay, [this] { StartAgain(0); });
           }),
      random_(simulator.Draws(Simulator::Stream::kProcess, kOwnDraws)),
      injector_({.simulator = simulator,
                 .network = network_,
                 .processes = processes_,
                 .start = [this](size_t process) { StartAgain(process); },
                 .bury = [this](size_t process) { Bury(process); },
                 .disconnected =
                     [this](HostId a, HostId b) {
                       // Hosts and processes have the same numbers.
                       if (a == kSchedulerHost) TellOfLoss(*processes_[b.value()]);
                       if (b == kSchedulerHost) TellOfLoss(*processes_[a.value()]);
                     }}) {
  AddScheduler();
  for (uint32_t i = 0; i < config_.servers; ++i) AddServer(i);
  for (size_t i = 0; i < config_.elasticity.late_servers.size(); ++i) {
    AddServer(config_.servers + static_cast<uint32_t>(i));
    delays_.back() = config_.elasticity.late_servers[i];
  }
}

int64_t SimCluster::DrawClockDrift(size_t index) const {
  const int64_t most = config_.clock_drift_max;
  Random random = simulator_.Draws(Simulator::Stream::kProcess, kClockDraws + index);
  return static_cast<int64_t>(random.Below(static_cast<uint64_t>(2 * most + 1))) - most;
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
          .clock_drift = DrawClockDrift(index),
          .ended =
              [this, index](Program::Outcome outcome) {
                if (outcome == Program::Outcome::kDone && terminated_.erase(index) == 0) {
                  done_[index] = true;
                  return;
                }
                simulator_.Count("process_gave_up");
                simulator_.After(kRestartDelay, [this, index] { StartAgain(index); });
              },
          .gone =
              [this](NodeId node, Incarnation incarnation) {
                if (random_.Chance(config_.connection_lost_chance)) TellOfLoss(node, incarnation);
              },
          .store = &store_};
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
  options.gone = nullptr;
  options.probe = [this](const std::string& endpoint) { return Probe(endpoint); };
  options.log = &log_;
  Add(std::move(options), [this](const Process::Birth&) {
    auto program =
        std::make_unique<SchedulerProgram>(simulator_, scheduler_, log_, store_.folder());
    if (on_scheduler_start_ && program->has_recovered()) on_scheduler_start_(simulator_.now());
    return program;
  });
}

void SimCluster::AddServer(uint32_t index) {
  std::vector<bool> listening(1 + config_.data_loops, true);
  listening[0] = false;
  Add(OptionsFor(absl::StrCat("server-", index), std::move(listening)),
      [this, index](const Process::Birth& birth) {
        Member::Options member = MemberOptions(proto::SERVER, birth);
        member.rank = static_cast<int>(index);
        member.labels = absl::StrCat("zone/rack-", index % 2, "/host-", index % 3);
        ServerProgram::Options options{.member = member, .data_loops = config_.data_loops};
        if (config_.has_device[index]) options.device = config_.device;
        if (config_.small_limits) options.queued_bytes_max = kSmallQueuedBytes;
        return std::make_unique<ServerProgram>(options);
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

void SimCluster::AddHostile() {
  const Process& client = AddClient("hostile-client", proto::CLIENT,
                                    [](Random) { return std::make_unique<IdleScript>(); });
  network_.MakeHostile(client.host(), [&client] {
    return SimNetwork::HostileName{.node = client.node(), .incarnation = client.incarnation()};
  });
  const Process& stranger = Add(OptionsFor("hostile-stranger", {false}), [](const Process::Birth&) {
    return std::make_unique<IdleProgram>();
  });
  network_.MakeHostile(stranger.host(), [&stranger] {
    return SimNetwork::HostileName{.node = kNobody, .incarnation = stranger.incarnation()};
  });
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
    if (done_[i]) continue;
    if (delays_[i] == absl::ZeroDuration()) {
      processes_[i]->Start();
    } else {
      simulator_.After(delays_[i], [this, i] { StartAgain(i); });
    }
  }
  for (const Termination& termination : config_.elasticity.terminations) {
    simulator_.After(termination.at, [this, &termination] { Terminate(termination); });
  }
}

void SimCluster::Terminate(const Termination& termination) {
  const size_t index = IndexOf(termination.server);
  Process& process = *processes_[index];
  if (healed() || !process.running() || process.paused()) return;
  simulator_.Count("terminated");
  if (simulator_.tracing()) simulator_.Trace(absl::StrCat("terminate ", termination.server));
  terminated_.insert(index);
  process.Post([&](absl::Time now, Outbox& outbox) {
    static_cast<ServerProgram*>(process.program())
        ->Terminate(now, termination.drain_deadline, outbox);
  });
}

void SimCluster::StartOver(const NextJob& next) {
  simulator_.Trace("all processes are killed, and a new job continues the newest snapshot");
  for (const auto& process : processes_) {
    if (!next.survivors.contains(process->name())) process->Crash();
  }
  store_.Crash();
  log_.Wipe();
  scheduler_.resume = kNewestSnapshot;
  scheduler_.servers = next.servers;
  scheduler_.groups = next.groups;
  for (size_t i = 0; i < processes_.size(); ++i) {
    done_[i] = next.absent.contains(processes_[i]->name());
    simulator_.After(kRestartDelay * random_.Uniform(), [this, i] { StartAgain(i); });
  }
}

size_t SimCluster::IndexOf(absl::string_view name) const {
  const auto found = std::find_if(processes_.begin(), processes_.end(),
                                  [name](const auto& process) { return process->name() == name; });
  COVEY_CHECK(found != processes_.end());
  return static_cast<size_t>(found - processes_.begin());
}

void SimCluster::StartAgain(size_t index) {
  if (!processes_[index]->running() && !done_[index]) processes_[index]->Start();
}

void SimCluster::Bury(size_t index) {
  // A cluster does not begin without a server that it waits for; such a server is restarted.
  const proto::ClusterView* view = published();
  if (view != nullptr && view->waiting_for().empty()) {
    done_[index] = true;
  } else {
    simulator_.After(kRestartDelay, [this, index] { StartAgain(index); });
  }
}

void SimCluster::TellOfLoss(Process& process) {
  if (process.node() != NodeId()) TellOfLoss(process.node(), process.incarnation());
}

void SimCluster::TellOfLoss(NodeId node, Incarnation incarnation) {
  Message message;
  message.set_to({kSchedulerNode, 0});
  message.envelope.mutable_connection_lost()->set_node(node.value());
  message.envelope.mutable_connection_lost()->set_incarnation(incarnation.value());
  simulator_.After(kLossIsToldAfter * random_.Uniform(), [this, message = std::move(message)] {
    simulator_.Count("connection_lost");
    processes_[0]->Tell(message);
  });
}

Process::Options::Finding SimCluster::Probe(const std::string& endpoint) {
  using Finding = Process::Options::Finding;
  if (random_.Chance(config_.network.loss) && !healed()) {
    return Finding{.result = proto::ProbeReply::SILENT, .after = kProbePatience};
  }
  const absl::Duration soon = absl::Milliseconds(5) * random_.Uniform();
  switch (network_.Probe(kSchedulerHost, endpoint)) {
    case SimNetwork::Listening::kYes:
      if (!config_.member.host.empty() && !healed() && random_.Chance(kRefusedOnTheWay)) {
        simulator_.Count("probe_refused_on_the_way");
        return {.result = proto::ProbeReply::REFUSED, .after = soon};
      }
      return {.result = proto::ProbeReply::CONNECTED, .after = soon};
    case SimNetwork::Listening::kNo:
      simulator_.Count("probe_refused");
      return {.result = proto::ProbeReply::REFUSED, .after = soon};
    case SimNetwork::Listening::kSilence:
      break;
  }
  return {.result = proto::ProbeReply::SILENT, .after = kProbePatience};
}

std::vector<std::string> SimCluster::names() const {
  std::vector<std::string> names;
  for (const auto& process : processes_) names.push_back(process->name());
  return names;
}

const proto::ClusterView* SimCluster::published() const {
  // The first process is always the scheduler.
  const auto* program = static_cast<const SchedulerProgram*>(processes_[0]->program());
  return program == nullptr ? nullptr : program->published();
}

const ClusterView* SimCluster::HeldView(absl::string_view process) const {
  Process& holder = *processes_[IndexOf(process)];
  return holder.running() ? holder.program()->view() : nullptr;
}

bool SimCluster::must_stop() const {
  const auto* program = static_cast<const SchedulerProgram*>(processes_[0]->program());
  return program != nullptr && program->must_stop();
}

std::vector<ReplicaSnapshot> SimCluster::Replicas() const {
  std::vector<ReplicaSnapshot> replicas;
  const proto::ClusterView* view = published();
  if (view == nullptr) return replicas;
  std::map<uint64_t, std::pair<const std::string*, const ServerProgram*>> servers;
  for (size_t i = 1; i < servers_end(); ++i) {
    Process& process = *processes_[i];
    if (!process.running()) continue;
    servers[process.node().value()] = {&process.name(),
                                       static_cast<const ServerProgram*>(process.program())};
  }
  for (const proto::Table& table : view->tables()) {
    for (const proto::Shard& shard : table.shards()) {
      const ShardId id{TableId(table.id()), ShardIndex(shard.index())};
      for (const proto::Replica& member : shard.chain()) {
        const auto server = servers.find(member.node());
        if (server == servers.end()) continue;
        const auto [name, program] = server->second;
        replicas.push_back(program->Snapshot(*name, member.loop(), id));
      }
    }
  }
  return replicas;
}

const server::Replica* SimCluster::FindReplica(absl::string_view server, uint32_t loop,
                                               ShardId shard) const {
  for (size_t i = 1; i < servers_end(); ++i) {
    Process& process = *processes_[i];
    if (process.name() != server || !process.running()) continue;
    return static_cast<const ServerProgram*>(process.program())->FindReplica(loop, shard);
  }
  return nullptr;
}

void SimCluster::Heal() {
  healed_at_ = simulator_.now();
  simulator_.Trace("heal");
  network_.Heal();
  store_.Heal();
  log_.Heal();
  injector_.Heal();
  for (size_t i = 0; i < processes_.size(); ++i) StartAgain(i);
}

}  // namespace covey::sim
