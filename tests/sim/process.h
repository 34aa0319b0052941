// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/random.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "common/simulation/simulator.h"
#include "tests/sim/observer.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/sim_network.h"

namespace covey::sim {

// What runs in one process: its actors and what they share. Built anew at each start, so that
// nothing survives a crash but the disk.
class Program {
 public:
  virtual ~Program() = default;
  // One per loop, in order.
  virtual std::vector<Actor*> loops() = 0;
  // What the real event loops would be told: who registration says this is (0 = nobody yet), and
  // its epoch.
  virtual NodeId node() const = 0;
  virtual Epoch epoch() const = 0;
  // When it is not kRunning any more, the process ends by itself.
  enum class Outcome { kRunning, kDone, kFailed };
  virtual Outcome outcome() const { return Outcome::kRunning; }
};

// One simulated process: a few single-threaded loops, as common/runtime/event_loop.h runs them,
// with virtual time.
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
    // A restarted process listens where it did before, and so meets what was meant for its
    // predecessor.
    bool reuse_endpoints = false;
    // Longest time that one call of an actor takes.
    absl::Duration call_cost_max = absl::Microseconds(20);
    // Messages that wait for one loop; further ones from other processes are dropped.
    size_t inbox_max = 4096;
    // Where the scheduler is; every process knows.
    std::string scheduler_endpoint;
    absl::Duration disk_delay_max = absl::Milliseconds(5);
    // The process has ended by itself.
    std::function<void(Program::Outcome)> ended;
    // The process is no more, for whatever reason; who it was, if it had registered.
    std::function<void(NodeId, Incarnation)> gone;
    // What its prober finds at an endpoint, and after how long. Null: it has no prober.
    struct Finding {
      proto::ProbeReply::Result result = proto::ProbeReply::SILENT;
      absl::Duration after;
    };
    std::function<Finding(const std::string& endpoint)> probe;
  };
  struct Birth {
    Incarnation incarnation;
    std::vector<std::string> endpoints;  // per loop; empty = listens nowhere
    Random random;
    SimDisk& disk;
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
  // To its first loop, from its own sockets; lost when it does not run.
  void Tell(Message message);

  bool running() const { return program_ != nullptr; }
  bool paused() const { return pauses_ > 0; }
  // Null when it does not run.
  Program* program() { return program_.get(); }
  NodeId node() const { return running() ? program_->node() : NodeId(); }
  Incarnation incarnation() const { return incarnation_; }
  HostId host() const { return options_.host; }
  const std::string& name() const { return options_.name; }
  // The calls of this process take so many times longer.
  void SetSlowness(double factor) { slowness_ = factor; }

 private:
  struct Loop {
    Actor* actor = nullptr;
    PortId port;
    std::deque<Message> inbox;
    absl::Time busy_until = absl::InfinitePast();
    absl::Time scheduled = absl::InfiniteFuture();
    bool started = false;
  };

  // From the network, which loses what there is no room for; the process's own disk, prober and
  // loops lose nothing.
  void Arrive(size_t loop, Message message);
  void Enqueue(size_t loop, Message message);
  void Schedule(size_t loop);
  void Run(size_t loop);
  void Flush(size_t loop, Outbox& outbox);
  void Append(const Message& message);
  void Probe(const Message& message);

  // Constant after construction.
  Simulator& simulator_;
  SimNetwork& network_;
  const std::vector<Observer*>& observers_;
  const Options options_;
  const Factory factory_;

  Random random_;
  SimDisk disk_;
  uint64_t starts_ = 0;
  double slowness_ = 1;

  // Of the present life.
  uint64_t life_ = 0;  // grows at each start and crash; events of an earlier life do nothing
  int pauses_ = 0;
  Incarnation incarnation_;
  std::unique_ptr<Program> program_;
  std::vector<Loop> loops_;
};

}  // namespace covey::sim
