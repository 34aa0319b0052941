// SPDX-License-Identifier: Apache-2.0
#include "worker/engine/worker_core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/base/set_once.h"
#include "common/base/status_macros.h"
#include "common/metrics/member_metrics.h"
#include "common/net/host_port.h"
#include "common/runtime/exposure.h"
#include "common/runtime/process_priority.h"
#include "worker/engine/worker_metrics.h"

namespace covey::worker {
namespace {

// Other members wait for this worker's loop while its program computes, so its own thread is back
// soon.
constexpr absl::Duration kOwnReturnsAfter = absl::Microseconds(100);
// A worker that leaves while others train first makes durable what only it holds.
constexpr absl::Duration kDrainFlushMax = absl::Seconds(10);

std::string ListenAddress(const WorkerConfig& config) {
  // An abstract socket: it needs no folder and leaves no file behind.
  if (config.transport == "ipc") {
    return absl::StrFormat("ipc://@covey-worker-%016x", RandomFromSystem());
  }
  return absl::StrCat("tcp://", HostPort(config.data_host, 0));
}

}  // namespace

absl::Status WorkerCore::Open() {
  if (config_.transport != "ipc") {
    WarnIfOutOfReach("data_host", config_.data_host, config_.cluster.scheduler);
  }
  if (is_exposed()) WarnOfExposure(config_.data_host);
  // Before the threads of the connection, which inherit it.
  ApplyPriority(config_.priority);
  client::Connection::Options options;
  options.role = proto::WORKER;
  options.listen = ListenAddress(config_);
  options.shared_memory = config_.transport == "auto";
  options.own_returns_after = kOwnReturnsAfter;
  options.gives_up = config_.gives_up;
  options.make_actor = [this](const client::ClientActor::Options& actor_options) {
    auto actor = std::make_unique<WorkerActor>(
        actor_options,
        Communicator::Options{.patience_after_away = config_.cluster.operation_deadline});
    actor->group().SetAlgorithm(config_.collective);
    actor_ = actor.get();
    client::ClientActor* client = &actor->client();
    return client::Connection::LoopActor{.actor = std::move(actor), .client = client};
  };
  options.metrics = {
      .address = config_.metrics,
      .role = "worker",
      .tls = config_.cluster.tls,
      .fill = [this](absl::Time now, MetricPage& page) { AddMetrics(now, page); },
      .conditions = [this](absl::Time now) { return WorkerConditions(now, *actor_); }};
  COVEY_ASSIGN_OR_RETURN(connection_, client::Connection::Open(config_.cluster, options));
  return absl::OkStatus();
}

bool WorkerCore::is_exposed() const {
  return config_.insecure && config_.transport != "ipc" && !IsLoopback(config_.data_host);
}

void WorkerCore::AddMetrics(absl::Time now, MetricPage& page) const {
  AddMemberMetrics(actor_->client().member(), is_exposed(), page);
  WorkerMetrics::Of(now, *actor_).AddTo(page);
}

std::function<void(absl::Time, Outbox&)> WorkerCore::WorkOf(Task task) const {
  return [actor = actor_, task = std::move(task)](absl::Time now, Outbox& outbox) {
    task(*actor, now, outbox);
  };
}

absl::Status WorkerCore::PostedStatus(bool posted) {
  if (posted) return absl::OkStatus();
  return absl::UnavailableError(
      "the worker is shutting down or its request queue is full; retry later");
}

absl::Status WorkerCore::Post(Task task) {
  return PostedStatus(connection_->Post(WorkOf(std::move(task))));
}

absl::Status WorkerCore::PostBeforeWaiting(Task task) {
  return PostedStatus(connection_->PostBeforeWaiting(WorkOf(std::move(task))));
}

absl::Status WorkerCore::Run(const Task& task) {
  return connection_->Run(
      [this, &task](absl::Time now, Outbox& outbox) { task(*actor_, now, outbox); });
}

absl::Status WorkerCore::SetAway(std::string reason, absl::Duration at_most) {
  const absl::Time until = MonotonicNow() + at_most;
  COVEY_RETURN_IF_ERROR(
      Post([reason = std::move(reason), until](WorkerActor& actor, absl::Time, Outbox&) {
        actor.SetAway(reason, until);
      }));
  away_.Begin(MonotonicNow(), until);
  return absl::OkStatus();
}

absl::Status WorkerCore::SetBack() {
  if (!away_.is_away(MonotonicNow())) return absl::OkStatus();
  COVEY_RETURN_IF_ERROR(
      Post([](WorkerActor& actor, absl::Time now, Outbox&) { actor.SetBack(now); }));
  away_.End(MonotonicNow());
  return absl::OkStatus();
}

absl::Status WorkerCore::RunWhenReady(const std::function<absl::Status(WorkerActor&)>& work,
                                      const std::function<bool()>& gives_up) {
  const SetOnce<absl::Status> done;
  COVEY_RETURN_IF_ERROR(Run([&](WorkerActor& actor, absl::Time, Outbox&) {
    actor.WhenReady([&work, &actor, done](const absl::Status& status) {
      done.Set(status.ok() ? work(actor) : status);
    });
  }));
  const absl::Time until = MonotonicNow() + config_.form_deadline;
  const absl::Duration ask_every =
      gives_up ? client::Connection::kAskEvery : absl::InfiniteDuration();
  bool has_given_up = false;
  do {
    const absl::Duration wait = std::min(ask_every, until - MonotonicNow());
    if (const absl::Status* status = done.WaitFor(wait)) return *status;
    has_given_up = gives_up && gives_up();
  } while (!has_given_up && MonotonicNow() < until);
  absl::Status missed;
  COVEY_RETURN_IF_ERROR(Run([&](WorkerActor& actor, absl::Time, Outbox&) {
    actor.WhenReady(nullptr);
    missed = NotReady();
  }));
  // `gives_up` may have consumed a signal, so its answer holds even if the group has just formed.
  if (has_given_up) return absl::CancelledError("gave up before its group had formed");
  return done.is_set() ? done.Wait() : missed;
}

absl::Status WorkerCore::NotReady() const {
  const Member& member = actor_->client().member();
  const proto::Node* node = member.view()->FindNode(member.node());
  std::string cause = "the cluster still waits for the scheduler's plan";
  if (actor_->group().formed()) {
    cause = "its group still waits for all members to meet";
  } else if (node != nullptr && !node->standby().empty()) {
    cause = node->standby();
  } else if (!member.view()->proto().waiting_for().empty()) {
    cause = absl::StrCat("the cluster still waits for ", member.view()->proto().waiting_for(),
                         "; start it");
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "worker-", connection_->rank(), " has waited ", absl::FormatDuration(config_.form_deadline),
      " for a group to train in: ", cause, "; see `covey status`, or allow more time"));
}

WorkerCore::~WorkerCore() {
  if (connection_ == nullptr) return;
  // Collectives end, and return their memory, before the loop stops.
  for (bool idle = false; !idle;) {
    const absl::Status ran = Run([&idle](WorkerActor& actor, absl::Time now, Outbox& outbox) {
      Communicator& group = actor.group();
      if (group.collectives() > 0 || group.meeting()) {
        group.Abort(now, absl::CancelledError("the worker was closed meanwhile"), outbox);
      }
      idle = group.collectives() == 0;
    });
    if (!ran.ok()) break;
  }
  bool drains = false;
  const absl::Status ran = Run([&drains](WorkerActor& actor, absl::Time, Outbox&) {
    const Member& member = actor.client().member();
    const proto::Node* node = member.view()->FindNode(member.node());
    drains = node != nullptr && node->draining() && node->state() == proto::Node::ALIVE;
  });
  if (!ran.ok() || !drains) return;
  if (const absl::Status kept = connection_->Flush(kDrainFlushMax); !kept.ok()) {
    LogWarning("pushes_may_be_lost", {{"reason", kept.message()}});
  }
}

}  // namespace covey::worker
