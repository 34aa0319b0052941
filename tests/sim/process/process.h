// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/random.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "common/simulation/simulator.h"
#include "tests/sim/network/host_id.h"
#include "tests/sim/network/sim_network.h"
#include "tests/sim/process/local_clock.h"
#include "tests/sim/process/observer.h"
#include "tests/sim/process/sim_log.h"
#include "tests/sim/process/sim_store.h"

namespace covey::sim {

// The program of one process: its actors and their shared state. Constructed at each start, so that
// only what is on disks survives a crash.
class Program {
 public:
  virtual ~Program() = default;
  // One per loop, in order.
  virtual std::vector<Actor*> loops() = 0;
  // What the real event loops would be told: the node id from registration (0 = not registered yet)
  // and its epoch.
  virtual NodeId node() const = 0;
  virtual Epoch epoch() const = 0;
  // The view that its node holds; null = it holds none.
  virtual const ClusterView* view() const { return nullptr; }
  // Makes of a message of an actor what travels, as the real transport does.
  virtual void Pack(Message& /*message*/) {}
  // What observers see in place of a message that travels; nothing = itself.
  virtual std::optional<Message> Shown(const Message& /*message*/) const { return std::nullopt; }
  // How long the last call of this loop waited for a device; 0 the second time.
  virtual absl::Duration TakeDeviceTime(size_t /*loop*/) { return absl::ZeroDuration(); }
  // Once the outcome is not kRunning, the process ends by itself.
  enum class Outcome { kRunning, kDone, kFailed };
  virtual Outcome outcome() const { return Outcome::kRunning; }
};

// One simulated process: a few single-threaded loops, as common/runtime/event_loop.h runs them,
// with virtual time, as its machine's clock has it.
//
//   down ── Start ──▶ running ◀─ Pause, Resume ─▶ paused
//    ▲                   │                           │
//    └───────────────────┴── Crash, or outcome() ───┘
//
// Actor-confined. Deterministic in the simulator's seed.
class Process {
 public:
  struct Options {
    std::string name;
    HostId host;
    uint64_t job = 0;
    // Per loop: whether it listens.
    std::vector<bool> listening;
    // A restarted process listens at its former endpoints, and so receives messages meant for its
    // predecessor.
    bool reuse_endpoints = false;
    // The longest time that one call of an actor takes.
    absl::Duration call_cost_max = absl::Microseconds(20);
    // The longest queue of a loop; further messages from other processes are dropped.
    size_t inbox_max = 4096;
    // The scheduler's endpoint, which every process knows.
    std::string scheduler_endpoint;
    int64_t clock_drift = 0;  // as LocalClock
    // The process has ended by itself.
    std::function<void(Program::Outcome)> ended;
    // The process has ended, for any reason; with its identity, if it had registered.
    std::function<void(NodeId, Incarnation)> gone;
    // The result of one try to connect to an endpoint, and the time that it takes. Null: no prober.
    struct Finding {
      proto::ProbeReply::Result result = proto::ProbeReply::SILENT;
      absl::Duration after;
    };
    std::function<Finding(const std::string& endpoint)> probe;
    // Outlive the process. Null: there is none.
    SimLog* log = nullptr;
    SimStore* store = nullptr;  // of snapshots
  };
  struct Birth {
    Incarnation incarnation;
    std::vector<std::string> endpoints;  // per loop; empty = listens nowhere
    Random random;
  };
  using Factory = std::function<std::unique_ptr<Program>(const Birth&)>;

  // `observers` may grow until the first start.
  Process(Simulator& simulator, SimNetwork& network, const std::vector<Observer*>& observers,
          Options options, Factory factory);

  void Start();
  void Crash();
  // Calls nest.
  void Pause();
  void Resume();
  // The same for one loop, while the others go on. Without effect when there is no such loop.
  void Hang(size_t loop);
  void Unhang(size_t loop);
  // Sends to its first loop, from its own sockets; lost when the process does not run.
  void Tell(Message message);
  // Calls `work` on its first loop, between two messages; not at all when it is down or paused.
  void Post(const std::function<void(absl::Time, Outbox&)>& work);

  bool running() const { return program_ != nullptr; }
  bool paused() const { return pauses_ > 0; }
  // Null when the process does not run.
  Program* program() { return program_.get(); }
  NodeId node() const { return running() ? program_->node() : NodeId(); }
  Incarnation incarnation() const { return incarnation_; }
  HostId host() const { return options_.host; }
  const std::string& name() const { return options_.name; }
  // Multiplies the duration of this process's calls.
  void SetSlowness(double factor) { slowness_ = factor; }

 private:
  struct Loop {
    Actor* actor = nullptr;
    PortId port;
    std::deque<Message> inbox;
    absl::Time busy_until = absl::InfinitePast();
    absl::Time scheduled = absl::InfiniteFuture();
    bool started = false;
    int hangs = 0;
  };

  // A message from the network, dropped when the inbox is full. Messages from the process's own
  // disk, prober and loops are never dropped.
  void Arrive(size_t loop, Message message);
  void Enqueue(size_t loop, Message message);
  void Schedule(size_t loop);
  void Run(size_t loop);
  void Flush(size_t loop, Outbox& outbox);
  // After a call: the process ends if it is over.
  void Conclude(size_t loop);
  void Append(size_t loop, const Message& message);
  // As scheduler::Prober. `first`: a refusal is checked by one more try.
  void Probe(const Message& message, bool first);
  void Store(const Message& message);

  // Constant after construction.
  Simulator& simulator_;
  SimNetwork& network_;
  const std::vector<Observer*>& observers_;
  const Options options_;
  const Factory factory_;

  Random random_;
  uint64_t starts_ = 0;
  double slowness_ = 1;
  LocalClock clock_;

  // Of the present life.
  uint64_t life_ = 0;  // grows at each start and crash; events of an earlier life do nothing
  int pauses_ = 0;
  absl::Time paused_at_;  // with the first of them
  Incarnation incarnation_;
  std::unique_ptr<Program> program_;
  std::vector<Loop> loops_;
};

}  // namespace covey::sim
