// SPDX-License-Identifier: Apache-2.0
#include "scheduler/scheduler_actor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/cluster/limits.h"
#include "common/cluster/own_pause.h"
#include "common/net/own_process.h"

namespace covey::scheduler {
namespace {

// While nodes are alive the actor wakes at this interval, so a much longer gap means that the
// scheduler itself stood still.
constexpr absl::Duration kTick = absl::Milliseconds(500);
constexpr size_t kWatchesMax = 2 * kNodesMax;

}  // namespace

SchedulerActor::SchedulerActor(const Config& config, std::optional<proto::LogRecord> recovered)
    : config_(config),
      state_(config.job(), std::move(recovered)),
      pipeline_(state_),
      machines_(config, state_),
      traces_(config.trace, state_),
      watches_(kWatchesMax),
      handlers_(config_, state_, machines_, pipeline_, watches_, trail_, audit_, traces_) {}

void SchedulerActor::Begin(absl::Time now) {
  if (started_ == absl::InfiniteFuture()) {
    started_ = now;
    machines_.Start(now);
    if (const proto::LogRecord& record = state_.record(); record.index() > 0) {
      trail_.Add(
          absl::ZeroDuration(),
          {.text = absl::StrCat("scheduler restarted from record ", record.index(), ", epoch ",
                                state_.epoch().value(), "; last decision: ", record.decision()),
           .kinds = {"job"}});
    }
  } else if (const absl::Duration pause = OwnPause(last_call_, now); pause > absl::ZeroDuration()) {
    machines_.membership.DiscountPause(pause);
  }
  last_call_ = now;
  state_.BeginCall();
}

void SchedulerActor::Finish(absl::Time now, Outbox& outbox) {
  for (Decision& decision : state_.TakeDecisions()) {
    if (on_decision_) on_decision_(decision.text);
    trail_.Add(now - started_, std::move(decision));
  }
  for (Message& request : machines_.TakeStoreRequests()) outbox.Send(std::move(request));
  pipeline_.Flush(now, outbox);
  if (on_loss_ != nullptr && machines_.chains.must_stop()) {
    std::exchange(on_loss_, nullptr)(machines_.chains.why_stop());
  }
  if (on_stopped_ == nullptr) return;
  const bool may_end =
      !disk_failure().ok() || machines_.scaling.SchedulerMayEnd(now - stopping_since_);
  if (may_end) std::exchange(on_stopped_, nullptr)();
}

proto::StatusReply SchedulerActor::Status(absl::Time now) const {
  proto::StatusReply status;
  const absl::Duration uptime = started_ > now ? absl::ZeroDuration() : now - started_;
  handlers_.FillStatus(now, uptime, status);
  return status;
}

void SchedulerActor::Stop(absl::Time now, std::function<void()> done, Outbox& outbox) {
  Begin(now);
  stopping_since_ = now;
  on_stopped_ = std::move(done);
  Finish(now, outbox);
}

void SchedulerActor::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  Begin(now);
  if (message.envelope.has_disk_durable()) {
    OnDiskDurable(now, message, outbox);
  } else if (message.envelope.has_connection_lost()) {
    OnConnectionLost(message, outbox);
  } else if (message.envelope.has_probe_reply()) {
    OnProbeReply(now, message, outbox);
  } else if (message.envelope.has_store_reply()) {
    if (IsFromOwnProcess(message)) machines_.OnStoreReply(now, message);
  } else {
    handlers_.Handle(now, now - started_, message, outbox);
  }
  handlers_.ReconcileChains(now);
  Finish(now, outbox);
}

void SchedulerActor::Wake(absl::Time now, Outbox& outbox) {
  Begin(now);
  const absl::Duration since_tick = now - std::exchange(last_tick_, now);
  if (disk_failure().ok()) {
    machines_.Tick(now,
                   [&](Message reply) { pipeline_.SendWhenDurable(std::move(reply), outbox); });
    handlers_.ReconcileChains(now);
  } else {
    machines_.membership.DiscountPause(std::min(since_tick, kTick));
    pipeline_.Retry(now, outbox);
  }
  if (watches_.NextWake() <= now) AnswerWatches(now, outbox);
  for (const Message& request : watches_.TakeExpired(now)) handlers_.AnswerWatch(request, outbox);
  Finish(now, outbox);
}

absl::Time SchedulerActor::NextWake() const {
  if (started_ == absl::InfiniteFuture()) return absl::InfinitePast();
  if (!disk_failure().ok()) return std::min(last_tick_ + kTick, watches_.NextWake());
  absl::Time next = std::min(machines_.NextTick(), handlers_.NextReconcile());
  if (next != absl::InfiniteFuture()) next = std::min(next, last_tick_ + kTick);
  return std::min(next, watches_.NextWake());
}

void SchedulerActor::OnDiskDurable(absl::Time now, const Message& message, Outbox& outbox) {
  const absl::Status before = disk_failure();
  for (Message& reply : pipeline_.OnDiskDurable(now, message)) {
    if (reply.envelope.has_register_reply()) {
      const NodeId node(reply.envelope.register_reply().node());
      StatusOf(reply).ok() ? machines_.membership.OnRegistrationAnswered(now, node)
                           : machines_.membership.OnRegistrationRefused(now, node);
    }
    outbox.Send(std::move(reply));
  }
  AnswerWatches(now, outbox);
  if (before.ok() && !disk_failure().ok()) {
    LogError("log_not_written", {{"error", disk_failure().message()}});
    trail_.Add(now - started_,
               {.text = absl::StrCat("decides nothing until its log can be written: ",
                                     disk_failure().message()),
                .kinds = {"job"}});
  } else if (!before.ok() && disk_failure().ok()) {
    LogInfo("log_written_again");
    trail_.Add(now - started_, {.text = "writes its log again, and decides", .kinds = {"job"}});
  }
}

void SchedulerActor::AnswerWatches(absl::Time now, Outbox& outbox) {
  for (const Message& request : watches_.TakeOlderThan(Epoch(published().epoch()), now)) {
    handlers_.AnswerWatch(request, outbox);
  }
}

void SchedulerActor::OnConnectionLost(const Message& message, Outbox& outbox) {
  auto probe = machines_.membership.OnConnectionLost(message.envelope.connection_lost());
  if (probe && disk_failure().ok()) outbox.Send(*std::move(probe));
}

void SchedulerActor::OnProbeReply(absl::Time now, const Message& message, Outbox& outbox) {
  if (message.envelope.from_loop() != kProbeLoop || !disk_failure().ok()) return;
  const auto death = machines_.membership.OnProbeReply(now, message);
  if (!death) return;
  machines_.OnDeath(now, *death,
                    [&](Message reply) { pipeline_.SendWhenDurable(std::move(reply), outbox); });
}

}  // namespace covey::scheduler
