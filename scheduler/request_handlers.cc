// SPDX-License-Identifier: Apache-2.0
#include "scheduler/request_handlers.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/log.h"
#include "common/base/small_limits.h"
#include "common/cluster/limits.h"
#include "common/net/control_methods.h"
#include "scheduler/access.h"

namespace covey::scheduler {
namespace {

// A watch is answered after this duration even without a new view, so that watches of vanished
// nodes are dropped.
constexpr absl::Duration kWatchMax = absl::Seconds(30);

std::string AskedBy(NodeId node) {
  return node == NodeId() ? "asked by hand" : absl::StrCat("asked by node ", node.value());
}

// A node learns the view of a larger cluster from its first watch, as bytes that are made once for
// all nodes: when all of them start at the same time, the replies to their registrations wait for
// the log together.
constexpr size_t kNodesToldAtRegistrationMax = 256;
constexpr size_t kSmallNodesToldAtRegistrationMax = 4;

// A caller that is no node, and shows no certificate.
bool IsStranger(const Message& request) {
  return request.caller == nullptr && request.from().node == NodeId();
}

// Incarnations tell the messages of a node from those of others (common/net/sender.h). Strangers
// are not told of any.
void HideIncarnations(proto::ClusterView& view) {
  for (proto::Node& node : *view.mutable_nodes()) node.clear_incarnation();
}

// Whether a group can have come so far, as far as its servers would take its pushes.
bool IsPlausible(const proto::Progress& progress, uint64_t highest_step) {
  return std::max({progress.step(), progress.group_step(), progress.unconfirmed_step()}) <=
         highest_step + kPushSequenceJumpMax;
}

uint32_t ToMs(absl::Duration duration) {
  return static_cast<uint32_t>(absl::ToInt64Milliseconds(duration));
}

}  // namespace

RequestHandlers::RequestHandlers(const Config& config, ClusterState& state, Machines& machines,
                                 CommitPipeline& pipeline, Watches& watches,
                                 const EventTrail& trail, AuditTrail& audit, TraceDesk& traces)
    : config_(config),
      state_(state),
      machines_(machines),
      pipeline_(pipeline),
      watches_(watches),
      trail_(trail),
      audit_(audit),
      traces_(traces) {}

void RequestHandlers::Handle(absl::Time now, absl::Duration uptime, const Message& request,
                             Outbox& outbox) {
  const Call call{.now = now, .uptime = uptime, .request = request, .outbox = outbox};
  const ControlMethod* const method = FindControlMethod(request.envelope);
  if (method == nullptr) return;
  if (!pipeline_.disk_failure().ok() && !request.envelope.has_heartbeat_request()) {
    return Refuse(call, pipeline_.FailureStatus());
  }
  if (const absl::Status status = CheckAccess(*method, request, state_, machines_.membership);
      !status.ok()) {
    return Refuse(call, status);
  }
  const absl::Status right = config_.identity.has_value()
                                 ? CheckCaller(*config_.identity, *method, request, state_)
                                 : absl::OkStatus();
  audit_.Add(now, *method, request, right);
  if (!right.ok()) return Refuse(call, right);
  switch (request.envelope.body_case()) {
#define COVEY_DISPATCH(Rpc, Stem, stem, access) \
  case proto::Envelope::k##Stem##Request:       \
    return Rpc(call);
    COVEY_CONTROL_METHODS(COVEY_DISPATCH)
#undef COVEY_DISPATCH
    default:
      return;
  }
}

void RequestHandlers::Register(const Call& call) {
  const proto::RegisterRequest& request = call.envelope().register_request();
  const auto registration =
      machines_.membership.Register(call.now, request, call.request.incarnation());
  if (absl::IsAlreadyExists(registration.status())) {
    // This process may be the next life of a holder that died before it watched the view.
    if (auto probe = machines_.membership.OnRankTaken(call.now, request)) {
      call.outbox.Send(*std::move(probe));
    }
  }
  if (!registration.ok()) return Refuse(call, registration.status());
  // Before any request that could create a table of the same name.
  machines_.PlaceRestoredTables();
  ReconcileChains(call.now);
  Message reply = MakeControlReply(call.request);
  proto::RegisterReply& body = *reply.envelope.mutable_register_reply();
  body.set_node(registration->node.value());
  body.set_rank(registration->rank);
  body.set_heartbeat_ms(ToMs(config_.heartbeat));
  if (request.role() == proto::SERVER) body.set_lease_ms(ToMs(config_.lease));
  const size_t told = LimitInForce(kNodesToldAtRegistrationMax, kSmallNodesToldAtRegistrationMax);
  if (static_cast<size_t>(state_.view().nodes_size()) <= told) *body.mutable_view() = state_.view();
  Answer(call, std::move(reply));
}

void RequestHandlers::Heartbeat(const Call& call) {
  const NodeId node = call.sender();
  proto::HeartbeatRequest without_progress;
  const bool is_plausible = IsPlausible(call.envelope().heartbeat_request().progress(),
                                        machines_.groups.roster().highest_step());
  if (!is_plausible) {
    without_progress = call.envelope().heartbeat_request();
    LogImplausible(node, without_progress.progress());
    without_progress.clear_progress();
  }
  const proto::HeartbeatRequest& request =
      is_plausible ? call.envelope().heartbeat_request() : without_progress;
  machines_.membership.OnHeartbeat(call.now, node, request);
  if (request.has_progress()) {
    machines_.topology.OnHeartbeat(call.now, node, request);
    machines_.away.OnHeartbeat(call.now, node, request);
    machines_.stragglers.OnHeartbeat(call.now, node, request.progress());
    machines_.plan_measurements.OnHeartbeat(call.now, node, request.progress());
    machines_.snapshots.OnProgress(call.now, node, request.progress());
  }
  machines_.contract_fallback.OnHeartbeat(node, request.load());
  if (request.has_load()) {
    machines_.snapshots.OnLoad(node, request.load());
    const Epoch known(call.envelope().header().epoch());
    machines_.quarantines.OnHeartbeat(call.now, node, known, request.load());
  }
  // Replies to heartbeats do not wait for the log, which would show that this scheduler leads.
  if (call.now >= leads_until_) {
    return Refuse(call, absl::UnavailableError("this scheduler has not renewed its lease in etcd, "
                                               "and another one may lead; retry"));
  }
  Message reply = MakeControlReply(call.request);
  proto::HeartbeatReply& body = *reply.envelope.mutable_heartbeat_reply();
  body.set_epoch(pipeline_.published().epoch());
  if (request.has_load()) body.set_lease_ms(ToMs(config_.lease));
  if (request.has_progress()) {
    machines_.topology.Tell(node, body);
    machines_.away.Tell(call.now, node, body);
  }
  traces_.Tell(call.now, node, body);
  call.outbox.Send(std::move(reply));
}

void RequestHandlers::LogImplausible(NodeId node, const proto::Progress& progress) {
  if (!std::has_single_bit(++implausible_)) return;
  LogWarning("progress_ignored", {{"node", node.value()},
                                  {"step", progress.step()},
                                  {"group_step", progress.group_step()},
                                  {"count", implausible_}});
}

void RequestHandlers::WatchView(const Call& call) {
  const uint64_t known = call.envelope().watch_view_request().known_epoch();
  if (pipeline_.published().epoch() > known && watches_.MayReply(call.now)) {
    return AnswerWatch(call.request, call.outbox);
  }
  if (watches_.Add(call.request, call.now + kWatchMax)) return;
  Refuse(call, absl::ResourceExhaustedError(
                   absl::StrCat("watch: ", watches_.max(), " watchers wait already; try later")));
}

void RequestHandlers::CreateTable(const Call& call) {
  const proto::TableSpec& spec = call.envelope().create_table_request().spec();
  // Shards are spread over the present servers, so all expected ones have to be present.
  if (const absl::Status servers = machines_.membership.CheckServers(); !servers.ok()) {
    return Refuse(call, Annotate(absl::StrCat("create table '", spec.name(), "'"), servers));
  }
  const auto table = machines_.tables.Create(spec);
  if (!table.ok()) return Refuse(call, table.status());
  ReconcileChains(call.now);
  Message reply = MakeControlReply(call.request);
  proto::CreateTableReply& body = *reply.envelope.mutable_create_table_reply();
  body.set_table(table->value());
  *body.mutable_view() = state_.view();
  Answer(call, std::move(reply));
}

void RequestHandlers::InitializeTables(const Call& call) {
  const auto epoch = machines_.initializations.OnRequest(
      call.sender(), call.envelope().initialize_tables_request());
  if (!epoch.ok()) return Refuse(call, epoch.status());
  ReconcileChains(call.now);
  Message reply = MakeControlReply(call.request);
  proto::InitializeTablesReply& body = *reply.envelope.mutable_initialize_tables_reply();
  body.set_epoch(epoch->value());
  *body.mutable_view() = state_.view();
  Answer(call, std::move(reply));
}

void RequestHandlers::DropTable(const Call& call) {
  const absl::Status dropped = machines_.tables.Drop(call.envelope().drop_table_request().name());
  if (!dropped.ok()) return Refuse(call, dropped);
  Message reply = MakeControlReply(call.request);
  reply.envelope.mutable_drop_table_reply()->set_epoch(state_.epoch().value());
  Answer(call, std::move(reply));
}

void RequestHandlers::SetContract(const Call& call) {
  const proto::SetContractRequest& request = call.envelope().set_contract_request();
  const auto epoch =
      machines_.tables.SetContract(request.name(), request.contract(), AskedBy(call.sender()));
  if (!epoch.ok()) return Refuse(call, epoch.status());
  Message reply = MakeControlReply(call.request);
  reply.envelope.mutable_set_contract_reply()->set_epoch(epoch->value());
  Answer(call, std::move(reply));
}

void RequestHandlers::ListTables(const Call& call) {
  Message reply = MakeControlReply(call.request);
  *reply.envelope.mutable_list_tables_reply()->mutable_tables() = state_.view().tables();
  Answer(call, std::move(reply));
}

void RequestHandlers::Barrier(const Call& call) {
  std::vector<Barriers::Answer> answers;
  machines_.barriers.Arrive(call.now, call.request, answers);
  AnswerAll(answers, [&](Message reply) { Answer(call, std::move(reply)); });
}

void RequestHandlers::GetWork(const Call& call) {
  std::vector<DataDispatcher::Answer> answers;
  machines_.dispatcher.OnRequest(call.now, call.request, answers);
  AnswerAll(answers, [&](Message reply) { Answer(call, std::move(reply)); });
}

void RequestHandlers::ReportReplicas(const Call& call) {
  machines_.restores.OnReports(call.now, call.envelope().replica_report_request());
  machines_.chains.OnReports(call.now, call.sender(), call.envelope().replica_report_request());
  ReconcileChains(call.now);
  Answer(call, MakeControlReply(call.request));
}

void RequestHandlers::ReportSnapshot(const Call& call) {
  machines_.snapshots.OnReport(call.now, call.envelope().snapshot_report_request());
  Answer(call, MakeControlReply(call.request));
}

void RequestHandlers::CreateSnapshot(const Call& call) {
  const auto id = machines_.snapshots.Create(call.now, AskedBy(call.sender()));
  if (!id.ok()) return Refuse(call, id.status());
  Message reply = MakeControlReply(call.request);
  reply.envelope.mutable_create_snapshot_reply()->set_snapshot(*id);
  Answer(call, std::move(reply));
}

void RequestHandlers::RestoreTables(const Call& call) {
  // As for CreateTable.
  if (const absl::Status servers = machines_.membership.CheckServers(); !servers.ok()) {
    return Refuse(call, Annotate("restore", servers));
  }
  const auto id = machines_.restores.Begin(call.now, call.envelope().restore_tables_request());
  if (!id.ok()) return Refuse(call, id.status());
  Message reply = MakeControlReply(call.request);
  reply.envelope.mutable_restore_tables_reply()->set_restore(*id);
  Answer(call, std::move(reply));
}

void RequestHandlers::Leave(const Call& call) {
  const NodeId node = call.sender();
  if (!machines_.membership.HasLeft(node, call.request.incarnation())) {
    const proto::Envelope& envelope = call.envelope();
    const absl::Status may_leave =
        machines_.membership.CheckLeave(node, Epoch(envelope.header().epoch()));
    if (!may_leave.ok()) return Refuse(call, may_leave);
    machines_.membership.Leave(call.now, node, envelope.leave_request().reason());
    machines_.OnDeparture(call.now, node, [&](Message reply) { Answer(call, std::move(reply)); });
  }
  Answer(call, MakeControlReply(call.request));
}

void RequestHandlers::Drain(const Call& call) {
  const auto epoch =
      machines_.scaling.Drain(call.envelope().drain_request(), AskedBy(call.sender()));
  if (!epoch.ok()) return Refuse(call, epoch.status());
  ReconcileChains(call.now);
  Message reply = MakeControlReply(call.request);
  reply.envelope.mutable_drain_reply()->set_epoch(epoch->value());
  Answer(call, std::move(reply));
}

void RequestHandlers::Scale(const Call& call) {
  const auto epoch =
      machines_.scaling.Scale(call.envelope().scale_request(), AskedBy(call.sender()));
  if (!epoch.ok()) return Refuse(call, epoch.status());
  ReconcileChains(call.now);
  Message reply = MakeControlReply(call.request);
  reply.envelope.mutable_scale_reply()->set_epoch(epoch->value());
  Answer(call, std::move(reply));
}

void RequestHandlers::Quarantine(const Call& call) {
  const auto epoch =
      machines_.quarantines.OnRequest(call.envelope().quarantine_request(), AskedBy(call.sender()));
  if (!epoch.ok()) return Refuse(call, epoch.status());
  Message reply = MakeControlReply(call.request);
  reply.envelope.mutable_quarantine_reply()->set_epoch(epoch->value());
  Answer(call, std::move(reply));
}

void RequestHandlers::GetStatus(const Call& call) {
  Message reply = MakeControlReply(call.request);
  proto::StatusReply& body = *reply.envelope.mutable_status_reply();
  FillStatus(call.now, call.uptime, body);
  if (IsStranger(call.request)) HideIncarnations(*body.mutable_view());
  trail_.CopyAfter(call.envelope().status_request().events_after(), body);
  Answer(call, std::move(reply));
}

void RequestHandlers::StartTrace(const Call& call) {
  auto order = traces_.Start(call.now, call.envelope().start_trace_request());
  if (!order.ok()) return Refuse(call, order.status());
  Message reply = MakeControlReply(call.request);
  *reply.envelope.mutable_start_trace_reply()->mutable_order() = *std::move(order);
  Answer(call, std::move(reply));
}

void RequestHandlers::ReportTrace(const Call& call) {
  const absl::Status kept = traces_.OnReport(call.sender(), call.envelope().trace_report_request());
  if (!kept.ok()) return Refuse(call, kept);
  Answer(call, MakeControlReply(call.request));
}

void RequestHandlers::GetTrace(const Call& call) {
  auto reported = traces_.Get(call.now, call.envelope().trace_request());
  if (!reported.ok()) return Refuse(call, reported.status());
  Message reply = MakeControlReply(call.request);
  *reply.envelope.mutable_trace_reply() = *std::move(reported);
  Answer(call, std::move(reply));
}

void RequestHandlers::FillStatus(absl::Time now, absl::Duration uptime,
                                 proto::StatusReply& status) const {
  *status.mutable_view() = state_.view();
  machines_.membership.FillStatus(now, status);
  machines_.away.FillStatus(now, status);
  machines_.stragglers.FillStatus(status);
  machines_.replans.FillStatus(now, status);
  machines_.snapshots.FillStatus(now, status);
  machines_.restores.FillStatus(now, status);
  status.set_uptime_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(uptime)));
  status.set_insecure(config_.insecure);
}

void RequestHandlers::ReconcileChains(absl::Time now) {
  if (now >= NextReconcile()) machines_.chains.Reconcile(now);
}

absl::Time RequestHandlers::NextReconcile() const {
  return pipeline_.is_writing() ? absl::InfiniteFuture() : machines_.chains.NextReconcile();
}

void RequestHandlers::Refuse(const Call& call, const absl::Status& status) {
  Message reply = MakeControlReply(call.request);
  SetStatus(status, reply);
  Answer(call, std::move(reply));
}

void RequestHandlers::Answer(const Call& call, Message reply) {
  pipeline_.SendWhenDurable(std::move(reply), call.outbox);
}

void RequestHandlers::AnswerWatch(const Message& request, Outbox& outbox) {
  const proto::WatchViewRequest& watch = request.envelope.watch_view_request();
  Message reply = MakeControlReply(request);
  proto::ClusterView& view = *reply.envelope.mutable_watch_view_reply()->mutable_view();
  if (IsStranger(request)) {
    view = pipeline_.published();
    HideIncarnations(view);
  } else {
    PublishedViews& views = pipeline_.views();
    view.set_epoch(views.newest().epoch());
    reply.frames.push_back(watch.takes_changes() ? views.Since(Epoch(watch.known_epoch()))
                                                 : views.Whole());
  }
  outbox.Send(std::move(reply));
}

}  // namespace covey::scheduler
