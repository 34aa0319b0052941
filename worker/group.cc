#include "worker/group.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/engine/connection.h"
#include "common/base/log.h"
#include "common/base/one_shot.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/cluster/topology.h"
#include "worker/worker_actor.h"

namespace covey::worker {
namespace {

constexpr absl::Duration kBarrierGrace = absl::Seconds(1);
// A worker that goes while others train leaves nothing behind that only it knows of.
constexpr absl::Duration kDrainFlushMax = absl::Seconds(10);

std::string ListenAddress(const WorkerConfig& config) {
  // An abstract socket: it needs no folder and leaves no file behind.
  if (config.transport == "ipc") {
    return absl::StrFormat("ipc://@covey-worker-%016x", RandomFromSystem());
  }
  return absl::StrCat("tcp://", config.data_host, ":0");
}

absl::Status CheckParts(std::span<const PartRange> parts, size_t elements, uint32_t size) {
  if (parts.size() != size) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", parts.size(), " parts for ", size, " members; give one per member"));
  }
  for (const PartRange& part : parts) {
    if (part.first > elements || part.count > elements - part.first) {
      return absl::InvalidArgumentError(absl::StrCat("part of ", part.count, " elements from ",
                                                     part.first, " is outside the tensor of ",
                                                     elements, " elements"));
    }
  }
  return absl::OkStatus();
}

// What the choice of algorithms rests on, once per group and run.
void LogGroup(const GroupMachine& group) {
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
  LogInfo("group ready", {{"group", group.id().value()},
                          {"members", group.size()},
                          {"rank", group.rank()},
                          {"racks", racks},
                          {"links", links}});
}

}  // namespace

Handle Group::ReduceScatter(std::span<float> data, std::vector<PartRange> parts,
                            const CollectiveOptions& options) {
  return Start({.kind = CollectiveKind::kReduceScatter, .data = data, .parts = std::move(parts)},
               options);
}

Handle Group::AllGather(std::span<float> data, std::vector<PartRange> parts,
                        const CollectiveOptions& options) {
  return Start({.kind = CollectiveKind::kAllGather, .data = data, .parts = std::move(parts)},
               options);
}

Handle Group::AllReduce(std::span<float> data, const CollectiveOptions& options) {
  return Start({.kind = CollectiveKind::kAllReduce, .data = data}, options);
}

Handle Group::AllReduce(std::vector<std::span<float>> tensors, const CollectiveOptions& options) {
  size_t elements = 0;
  for (const std::span<float> tensor : tensors) elements += tensor.size();
  const auto fused = std::make_shared<std::vector<float>>();
  fused->reserve(elements);
  for (const std::span<float> tensor : tensors) {
    fused->insert(fused->end(), tensor.begin(), tensor.end());
  }
  Collective collective{.kind = CollectiveKind::kAllReduce, .data = *fused, .owner = fused};
  collective.arrived = [fused, tensors = std::move(tensors)](absl::Time, const CollectiveResult&,
                                                             Outbox&) {
    auto from = fused->begin();
    for (const std::span<float> tensor : tensors) {
      const auto end = from + static_cast<ptrdiff_t>(tensor.size());
      std::copy(from, end, tensor.begin());
      from = end;
    }
  };
  return Start(std::move(collective), options);
}

Handle Group::Broadcast(std::span<float> data, uint32_t root, const CollectiveOptions& options) {
  return Start({.kind = CollectiveKind::kBroadcast, .data = data, .root = root}, options);
}

Handle Group::Barrier() { return Start({.kind = CollectiveKind::kBarrier}, {}); }

Handle Group::Start(Collective collective, const CollectiveOptions& options) {
  if (collective.root >= size_) {
    return Handle(
        {.status = absl::InvalidArgumentError(absl::StrCat("broadcast from rank ", collective.root,
                                                           " of a group of ", size_, " members"))});
  }
  if (collective.parts.empty()) collective.parts = EvenParts(collective.data.size(), size_);
  const absl::Status fits = CheckParts(collective.parts, collective.data.size(), size_);
  if (!fits.ok()) return Handle({.status = fits});
  collective.algorithm = options.algorithm;
  collective.format = options.format.value_or(worker_.config_.collective_wire);
  collective.priority = options.priority;
  const Handle handle;
  collective.done = [handle](absl::Time, const CollectiveResult& result, Outbox&) {
    handle.Complete({.status = result.status});
  };
  const bool posted = worker_.connection_->Post(
      [&actor = *worker_.actor_, patience = worker_.config_.cluster.operation_deadline,
       round = round_, collective = std::move(collective)](absl::Time now, Outbox& outbox) mutable {
        GroupMachine& group = actor.group();
        if (group.round() != round || !group.formed()) {
          collective.done(now,
                          {.status = absl::FailedPreconditionError(absl::StrCat(
                               "the group has other members now, ", group.size(),
                               " of them; call Group::Refresh after a step that changed it"))},
                          outbox);
          return;
        }
        collective.id = group.NextPlain();
        collective.deadline = now + patience;
        group.Start(now, std::move(collective), outbox);
      });
  if (!posted) {
    handle.Complete({.status = absl::ResourceExhaustedError(
                         "too many collectives wait in this worker; wait for some of them first")});
  }
  return handle;
}

absl::Status Group::Refresh() {
  absl::Status status = absl::UnavailableError("this worker is in no group; see `covey status`");
  COVEY_RETURN_IF_ERROR(worker_.connection_->Run([&](absl::Time, Outbox&) {
    const GroupMachine& group = worker_.actor_->group();
    if (!group.formed()) return;
    id_ = group.id();
    rank_ = group.rank();
    size_ = group.size();
    round_ = group.round();
    status = absl::OkStatus();
  }));
  return status;
}

Worker::Worker(const WorkerConfig& config) : config_(config), group_(*this) {}

absl::StatusOr<std::unique_ptr<Worker>> Worker::Join(const WorkerConfig& config) {
  COVEY_RETURN_IF_ERROR(config.Validate());
  auto worker = std::unique_ptr<Worker>(new Worker(config));
  Worker& self = *worker;
  client::Connection::Options options;
  options.role = proto::WORKER;
  options.listen = ListenAddress(config);
  options.make_actor = [&self](const client::ClientActor::Options& actor_options) {
    auto actor = std::make_unique<WorkerActor>(actor_options);
    actor->group().SetAlgorithm(self.config_.collective);
    self.actor_ = actor.get();
    client::ClientActor* client = &actor->client();
    return client::Connection::LoopActor{.actor = std::move(actor), .client = client};
  };
  COVEY_ASSIGN_OR_RETURN(worker->connection_, client::Connection::Open(config.cluster, options));
  COVEY_RETURN_IF_ERROR(worker->WhenReady([&self] { return self.TakeInGroup(); }));
  return worker;
}

absl::Status Worker::WhenReady(const std::function<absl::Status()>& work) {
  const OneShot<absl::Status> done;
  COVEY_RETURN_IF_ERROR(connection_->Run([&](absl::Time, Outbox&) {
    actor_->WhenReady(
        [&work, done](const absl::Status& status) { done.Set(status.ok() ? work() : status); });
  }));
  if (const absl::Status* status = done.WaitFor(config_.form_deadline)) return *status;
  absl::Status missed;
  COVEY_RETURN_IF_ERROR(connection_->Run([&](absl::Time, Outbox&) {
    actor_->WhenReady(nullptr);
    missed = NotReady();
  }));
  return done.is_set() ? done.Wait() : missed;
}

absl::Status Worker::NotReady() const {
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
      "worker-", rank(), " has waited ", absl::FormatDuration(config_.form_deadline),
      " for a group to train in: ", cause, "; see `covey status`, or allow more time"));
}

absl::Status Worker::TakeInGroup() {
  const GroupMachine& group = actor_->group();
  LogGroup(group);
  group_.id_ = group.id();
  group_.rank_ = group.rank();
  group_.size_ = group.size();
  group_.round_ = group.round();
  const ClusterView& view = *actor_->client().member().view();
  groups_ = static_cast<uint32_t>(view.proto().groups_size());
  for (const proto::Group& other : view.proto().groups()) {
    size_ += static_cast<uint32_t>(other.members_size());
  }
  return absl::OkStatus();
}

Worker::~Worker() {
  if (connection_ == nullptr) return;
  // Collectives end, and give their memory back, before the loop goes.
  for (bool idle = false; !idle;) {
    const absl::Status ran = connection_->Run([this, &idle](absl::Time now, Outbox& outbox) {
      GroupMachine& group = actor_->group();
      if (group.collectives() > 0 || group.meeting()) {
        group.Abort(now, absl::CancelledError("the worker was closed meanwhile"), outbox);
      }
      idle = group.collectives() == 0;
    });
    if (!ran.ok()) break;
  }
  bool drains = false;
  const absl::Status ran = connection_->Run([this, &drains](absl::Time, Outbox&) {
    const Member& member = actor_->client().member();
    const proto::Node* node = member.view()->FindNode(member.node());
    drains = node != nullptr && node->draining() && node->state() == proto::Node::ALIVE;
  });
  if (!ran.ok() || !drains) return;
  if (const absl::Status kept = connection_->Flush(kDrainFlushMax); !kept.ok()) {
    LogWarning("pushes may be lost", {{"reason", kept.message()}});
  }
}

absl::Status Worker::RequestDrain() {
  const bool posted = connection_->Post([&actor = *actor_,
                                         patience = config_.cluster.operation_deadline](
                                            absl::Time now, Outbox& outbox) {
    const Member& member = actor.client().member();
    proto::Envelope request;
    request.mutable_drain_request()->set_node(member.view()->NameOf(member.node()));
    actor.client().control().Start(
        now, std::move(request), now + patience,
        [](absl::Time, const absl::Status& status, const proto::Envelope*, Outbox&) {
          if (status.ok()) return;
          LogWarning("the scheduler does not let this worker go", {{"reason", status.message()}});
        },
        outbox);
  });
  return posted ? absl::OkStatus()
                : absl::UnavailableError("the worker's loop is stopping, or flooded");
}

uint32_t Worker::rank() const { return connection_->rank(); }

absl::Status Worker::Barrier(absl::string_view name, absl::Duration timeout) {
  proto::Envelope request;
  proto::BarrierRequest& body = *request.mutable_barrier_request();
  body.set_name(std::string(name));
  body.set_deadline_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(timeout)));
  const Handle handle;
  const bool posted = connection_->Post([&actor = *actor_, request = std::move(request), timeout,
                                         handle](absl::Time now, Outbox& outbox) mutable {
    request.mutable_barrier_request()->set_participants(actor.WorkersToMeet());
    // The scheduler's own deadline comes first: its error names who is missing.
    actor.Meet(
        now, request, now + timeout + kBarrierGrace,
        [handle](const absl::Status& status) { handle.Complete({.status = status}); }, outbox);
  });
  return posted ? handle.Wait()
                : absl::UnavailableError("the worker's loop is stopping, or flooded");
}

}  // namespace covey::worker
