// SPDX-License-Identifier: Apache-2.0
#include "worker/engine/worker_actor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/net/own_process.h"
#include "common/net/sender.h"

namespace covey::worker {

WorkerActor::WorkerActor(const client::ClientActor::Options& options,
                         const Communicator::Options& group)
    : client_(options), group_(group), hybrid_(client_.engine(), group_) {
  group_.OnReady([this](absl::Time now, Outbox& outbox) {
    hybrid_.GroupReady(now, outbox);
    TellReady();
  });
  group_.OnInterrupted(
      [this](absl::Time now, Outbox& outbox) { return hybrid_.Interrupted(now, outbox); });
  group_.OnRendezvous([this] { return hybrid_.Progress(); });
  group_.OnLeft([this](absl::Time now, const absl::Status& status, Outbox& outbox) {
    hybrid_.Left(now, status, outbox);
  });
  client_.OnChange([this](absl::Time now, Outbox& outbox) { MembershipChanged(now, outbox); });
}

void WorkerActor::MembershipChanged(absl::Time now, Outbox& outbox) {
  const Member& member = client_.member();
  hybrid_.SetView(now, member.view(), outbox);
  group_.SetView(now, member.node(), member.view(), outbox);
  prober_.SetView(*member.view(), outbox);
  if (member.state() == Member::State::kFailed) group_.Abort(now, member.failure(), outbox);
  TellReady();
  CheckMeeting();
}

void WorkerActor::TellReady() {
  if (!when_ready_) return;
  const Member& member = client_.member();
  absl::Status never = group_.failure();
  if (member.state() == Member::State::kFailed) {
    never = member.failure();
  } else if (never.ok() && !group_.formed()) {
    const proto::Node* node = member.view()->FindNode(member.node());
    if (node != nullptr && node->draining()) {
      never = absl::CancelledError(absl::StrCat(
          node->name(), " was asked to leave before it was in a group; the program can end"));
    }
  }
  if (never.ok() && !group_.ready()) return;
  std::exchange(when_ready_, nullptr)(never);
}

void WorkerActor::Meet(absl::Time now, proto::Envelope barrier, absl::Time deadline, Met met,
                       Outbox& outbox) {
  COVEY_CHECK(!met_);
  met_ = std::move(met);
  alive_.clear();
  for (const proto::Node& node : client_.member().view()->proto().nodes()) {
    if (node.role() == proto::WORKER && node.state() == proto::Node::ALIVE) {
      alive_.insert(NodeId(node.id()));
    }
  }
  client_.control().Start(
      now, std::move(barrier), deadline,
      [this](absl::Time, const absl::Status& status, const proto::Envelope*, Outbox&) {
        EndMeeting(status);
      },
      outbox);
  CheckMeeting();
}

void WorkerActor::EndMeeting(const absl::Status& status) {
  if (met_) std::exchange(met_, nullptr)(status);
}

uint32_t WorkerActor::WorkersToMeet() {
  const ClusterView& view = *client_.member().view();
  uint32_t count = 0;
  for (const proto::Node& node : view.proto().nodes()) {
    if (node.role() != proto::WORKER || node.state() != proto::Node::ALIVE || node.draining()) {
      continue;
    }
    if (view.GroupOf(NodeId(node.id())) != nullptr || node.home_group() != 0) ++count;
  }
  return count;
}

void WorkerActor::CheckMeeting() {
  if (!met_) return;
  const ClusterView& view = *client_.member().view();
  for (const NodeId worker : alive_) {
    const proto::Node* node = view.FindNode(worker);
    if (node == nullptr || node->state() != proto::Node::DEAD) continue;
    EndMeeting(absl::UnavailableError(
        absl::StrCat("barrier of all workers: ", node->name(), " (pid ", node->process_id(),
                     " on host ", node->host(), ") is dead; call the barrier again without it")));
    return;
  }
}

void WorkerActor::ReportStep(absl::Time now, const StepReport& step) {
  meter_.SetStepsAside(hybrid_.steps_aside());
  meter_.SetRecoveries(hybrid_.recovery().recoveries(), hybrid_.recovery().time());
  if (meter_.AddStep(now, step)) meter_.SetStaleness(hybrid_.TakeStaleness());
  const Progress& progress = meter_.progress();
  proto::Progress& report = client_.member().progress();
  report.set_step(progress.step);
  report.set_samples(progress.samples);
  report.set_loss(progress.loss);
  report.set_samples_per_second(progress.samples_per_second);
  report.set_staleness(progress.staleness);
  report.set_compute_seconds(progress.compute_seconds);
  report.set_input_seconds(progress.input_seconds);
  report.set_wait_seconds(progress.wait_seconds);
  report.set_group_seconds(progress.group_seconds);
  report.set_servers_seconds(progress.servers_seconds);
  report.set_slowest_seconds(progress.slowest_seconds);
  report.set_samples_per_step(progress.samples_per_step);
  report.set_steps_aside(progress.steps_aside);
  report.set_recoveries(progress.recoveries);
  report.set_recovery_seconds(progress.recovery_seconds);
}

void WorkerActor::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  if (!IsFromOwnProcess(message) && IsFromImpostor(message, *client_.member().view())) {
    ++impostors_;
    return;
  }
  if (group_.Receive(now, message, outbox)) {
    hybrid_.Observe(now, message, outbox);
  } else if (prober_.Receive(now, message, *client_.member().view(), outbox)) {
    ReportProbes();
  } else {
    client_.Receive(now, message, outbox);
    if (message.envelope.has_heartbeat_reply()) HeartbeatAnswered(now, outbox);
  }
}

void WorkerActor::HeartbeatAnswered(absl::Time now, Outbox& outbox) {
  const Member& member = client_.member();
  group_.SetAway(now, member.away());
  client_.engine().SetGroupDeadlineFloor(group_.deadline_floor_of_all());
  prober_.SetOrder(now, member.probe_order(), *member.view(), outbox);
  ReportProbes();
}

void WorkerActor::ReportProbes() {
  if (auto report = prober_.TakeReport()) client_.member().SetProbes(*std::move(report));
}

void WorkerActor::Wake(absl::Time now, Outbox& outbox) {
  NoteLeftOut();
  if (group_.formed() && now >= client_.member().NextWake()) {
    // A heartbeat may be due. The step is as of now, because the scheduler plans for steps ahead;
    // also before the first one, which the program may be far from.
    proto::Progress& report = client_.member().progress();
    report.set_group(group_.id().value());
    report.set_group_step(hybrid_.finished().value());
  }
  client_.Wake(now, outbox);
  group_.Wake(now, outbox);
  hybrid_.Wake(now, outbox);
  prober_.Wake(now, *client_.member().view(), outbox);
  ReportProbes();
  // A group may fail before it is ready.
  TellReady();
}

void WorkerActor::NoteLeftOut() {
  if (group_.formed()) {
    was_in_group_ = true;
  } else if (was_in_group_ && !is_left_out_) {
    is_left_out_ = true;
    client_.member().SetAway("left out of its group", absl::InfiniteFuture());
  }
}

absl::Time WorkerActor::NextWake() const {
  return std::min({client_.NextWake(), group_.NextWake(), hybrid_.NextWake(), prober_.NextWake()});
}

}  // namespace covey::worker
