// SPDX-License-Identifier: Apache-2.0
#include "worker/worker.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/cluster/topology.h"
#include "common/runtime/supervisor_notice.h"
#include "worker/engine/worker_core.h"

namespace covey::worker {
namespace {

constexpr absl::Duration kBarrierGrace = absl::Seconds(1);

// Logs the basis of the choice of algorithms, once per group and run.
void LogGroup(const Communicator& group) {
  std::string links;
  for (size_t i = 0; i < kLevels; ++i) {
    const auto level = static_cast<Level>(i);
    bool used = false;
    for (const TopologyPath& path : group.paths()) {
      used = used || (&path != &group.paths()[group.rank()] &&
                      CommonLevel(path, group.paths()[group.rank()]) == level);
    }
    if (!used) continue;
    const LinkCost& cost = group.link_costs().at(level);
    absl::StrAppend(&links, links.empty() ? "" : ", ", LevelName(level), " ",
                    absl::FormatDuration(absl::Seconds(cost.latency_seconds)), " ",
                    absl::StrFormat("%.3g MB/s", cost.bytes_per_second / 1e6));
  }
  const std::string racks = group.measured_racks() > 0
                                ? absl::StrCat(group.measured_racks(), " measured by distance")
                                : "by labels";
  const double message_us = group.link_costs().message_seconds * 1e6;
  LogInfo("group_ready", {{"group", group.id().value()},
                          {"members", group.size()},
                          {"rank", group.rank()},
                          {"racks", racks},
                          {"links", links},
                          {"a_message", absl::StrFormat("%.3gus", message_us)}});
}

}  // namespace

Worker::Worker(const WorkerConfig& config)
    : core_(std::make_unique<WorkerCore>(config)), group_(*core_) {}

Worker::~Worker() = default;

absl::StatusOr<std::unique_ptr<Worker>> Worker::Join(const WorkerConfig& config) {
  COVEY_RETURN_IF_ERROR(config.Validate());
  auto worker = std::unique_ptr<Worker>(new Worker(config));
  COVEY_RETURN_IF_ERROR(worker->core_->Open());
  // Before its group is ready: a supervisor may start one worker after the other.
  const std::string name = absl::StrCat("worker ", worker->rank(), " of job ", config.cluster.job);
  NotifyReady(absl::StrCat(name, ", waiting for its group"));
  COVEY_RETURN_IF_ERROR(worker->core_->RunWhenReady(
      [&worker](WorkerActor& actor) {
        worker->AdoptGroup(actor);
        return absl::OkStatus();
      },
      config.gives_up));
  NotifyStatus(absl::StrCat(name, ", in a group of ", worker->group().size()));
  return worker;
}

void Worker::AdoptGroup(WorkerActor& actor) {
  LogGroup(actor.group());
  group_.place_ = GroupPlace::In(actor.group());
  const ClusterView& view = *actor.client().member().view();
  groups_ = static_cast<uint32_t>(view.proto().groups_size());
  initial_groups_ = view.initial_groups();
  for (const proto::Group& other : view.proto().groups()) {
    size_ += static_cast<uint32_t>(other.members_size());
  }
}

absl::Status Worker::RequestDrain() {
  return core_->Post([patience = core_->config().cluster.operation_deadline](
                         WorkerActor& actor, absl::Time now, Outbox& outbox) {
    const Member& member = actor.client().member();
    proto::Envelope request;
    request.mutable_drain_request()->set_node(member.view()->NameOf(member.node()));
    actor.client().control().Start(
        now, std::move(request), now + patience,
        [](absl::Time, const absl::Status& status, const proto::Envelope*, Outbox&) {
          if (status.ok()) return;
          LogWarning("drain_refused", {{"reason", status.message()}});
        },
        outbox);
  });
}

absl::Status Worker::SetAway(absl::string_view reason, absl::Duration at_most) {
  if (reason.empty() || reason.size() > kNameBytesMax ||
      !std::all_of(reason.begin(), reason.end(), absl::ascii_isprint)) {
    return absl::InvalidArgumentError(
        absl::StrCat("away: the reason '", absl::CHexEscape(reason.substr(0, kNameBytesMax)),
                     "' is not allowed: use 1 to ", kNameBytesMax,
                     " printable characters of ASCII, for example 'evaluation'"));
  }
  if (at_most <= absl::ZeroDuration() || at_most > kAwayMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "away: at most ", absl::FormatDuration(at_most), "; use more than 0, and at most ",
        absl::FormatDuration(kAwayMax), ", and call it again when more is needed"));
  }
  return core_->SetAway(std::string(reason), at_most);
}

absl::Status Worker::SetBack() { return core_->SetBack(); }

uint32_t Worker::rank() const { return core_->connection().rank(); }

absl::Status Worker::Barrier(absl::string_view name, absl::Duration timeout) {
  proto::Envelope request;
  proto::BarrierRequest& body = *request.mutable_barrier_request();
  body.set_name(std::string(name));
  body.set_deadline_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(timeout)));
  const Handle handle;
  COVEY_RETURN_IF_ERROR(
      core_->Post([request = std::move(request), timeout, handle](
                      WorkerActor& actor, absl::Time now, Outbox& outbox) mutable {
        request.mutable_barrier_request()->set_participants(actor.WorkersToMeet());
        // The scheduler's own deadline expires first: its error names the missing workers.
        actor.Meet(
            now, request, now + timeout + kBarrierGrace,
            [handle](const absl::Status& status) { handle.Complete({.status = status}); }, outbox);
      }));
  return handle.Wait();
}

}  // namespace covey::worker
