// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "tests/sim/process/process.h"
#include "worker/engine/worker_actor.h"

namespace covey::sim {

// The part of a training program that uses the worker library. Runs on the worker's loop.
class WorkerScript {
 public:
  virtual ~WorkerScript() = default;
  // Called after every call of the worker's actor, and when NextWake() is due.
  virtual void Step(absl::Time now, worker::WorkerActor& worker, Outbox& outbox) = 0;
  virtual absl::Time NextWake() const = 0;
  // The program has returned: the node leaves in order, and its process ends.
  virtual bool done() const = 0;
};

// The real worker's actor, with a script in place of a program's threads. A process of its own.
class ScriptedWorker : public Actor, public Program {
 public:
  ScriptedWorker(const client::ClientActor::Options& options,
                 const worker::Communicator::Options& group, std::unique_ptr<WorkerScript> script);
  ~ScriptedWorker() override;

  void Receive(absl::Time now, const Message& message, Outbox& outbox) override;
  void Wake(absl::Time now, Outbox& outbox) override;
  absl::Time NextWake() const override;

  std::vector<Actor*> loops() override { return {this}; }
  NodeId node() const override { return worker_->client().member().node(); }
  Epoch epoch() const override { return worker_->client().member().view()->epoch(); }
  const ClusterView* view() const override { return worker_->client().member().view().get(); }
  Outcome outcome() const override;

 private:
  bool working() const {
    return worker_->client().member().state() == Member::State::kMember && !leaving_;
  }
  void Step(absl::Time now, Outbox& outbox);

  std::unique_ptr<WorkerScript> script_;
  std::unique_ptr<worker::WorkerActor> worker_;
  bool leaving_ = false;
};

}  // namespace covey::sim
