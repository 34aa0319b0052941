// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/cluster/scripted_worker.h"

#include <algorithm>
#include <utility>

#include "tests/sim/cluster/member_outcome.h"

namespace covey::sim {

ScriptedWorker::ScriptedWorker(const client::ClientActor::Options& options,
                               const worker::Communicator::Options& group,
                               std::unique_ptr<WorkerScript> script)
    : script_(std::move(script)), worker_(std::make_unique<worker::WorkerActor>(options, group)) {}

// The actor refers to the script's memory and to its callbacks.
ScriptedWorker::~ScriptedWorker() { worker_.reset(); }

void ScriptedWorker::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  worker_->Receive(now, message, outbox);
  Step(now, outbox);
}

void ScriptedWorker::Wake(absl::Time now, Outbox& outbox) {
  worker_->Wake(now, outbox);
  Step(now, outbox);
}

void ScriptedWorker::Step(absl::Time now, Outbox& outbox) {
  if (!working()) return;
  script_->Step(now, *worker_, outbox);
  if (!script_->done()) return;
  leaving_ = true;
  worker_->client().member().Leave(now, "done", outbox);
}

absl::Time ScriptedWorker::NextWake() const {
  return std::min(worker_->NextWake(), working() ? script_->NextWake() : absl::InfiniteFuture());
}

Program::Outcome ScriptedWorker::outcome() const { return OutcomeOf(worker_->client().member()); }

}  // namespace covey::sim
