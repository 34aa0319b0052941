// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "client/engine/client_actor.h"
#include "tests/sim/process/process.h"

namespace covey::sim {

// The part of a training program that uses the client library. Runs on the client's loop.
class Script {
 public:
  virtual ~Script() = default;
  // Called after every call of the client's actor, and when NextWake() is due.
  virtual void Step(absl::Time now, client::ClientActor& client, Outbox& outbox) = 0;
  virtual absl::Time NextWake() const = 0;
  // The program has returned: the node leaves in order, and its process ends.
  virtual bool done() const = 0;
};

// The real client's actor, with a script in place of a program's threads. A process of its own.
class ScriptedClient : public Actor, public Program {
 public:
  ScriptedClient(const client::ClientActor::Options& options, std::unique_ptr<Script> script);
  ~ScriptedClient() override;

  void Receive(absl::Time now, const Message& message, Outbox& outbox) override;
  void Wake(absl::Time now, Outbox& outbox) override;
  absl::Time NextWake() const override;

  std::vector<Actor*> loops() override { return {this}; }
  NodeId node() const override { return client_->member().node(); }
  Epoch epoch() const override { return client_->member().view()->epoch(); }
  const ClusterView* view() const override { return client_->member().view().get(); }
  Outcome outcome() const override;

 private:
  void Step(absl::Time now, Outbox& outbox);

  std::unique_ptr<Script> script_;
  std::unique_ptr<client::ClientActor> client_;
  bool leaving_ = false;
};

// Creates a table, or finds that it exists; retries until one of them succeeds.
class TableCreation {
 public:
  explicit TableCreation(proto::TableSpec spec) : spec_(std::move(spec)) {}

  // The table once this node's view holds it, else null. Call it at every step.
  const proto::Table* Advance(absl::Time now, client::ClientActor& client, Outbox& outbox);
  // The error with which the scheduler refused for good; OK when it has not.
  const absl::Status& refusal() const { return refusal_; }

 private:
  const proto::TableSpec spec_;
  bool asking_ = false;
  absl::Status refusal_;
};

}  // namespace covey::sim
