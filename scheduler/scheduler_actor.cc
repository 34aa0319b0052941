#include "scheduler/scheduler_actor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/planted_bug.h"
#include "common/cluster/limits.h"
#include "common/cluster/view.h"
#include "common/net/control_methods.h"
#include "scheduler/log/scheduler_log.h"

namespace covey::scheduler {
namespace {

// While nodes are alive the actor wakes so often; a much longer gap means that it stood still
// itself.
constexpr absl::Duration kTick = absl::Milliseconds(500);
constexpr absl::Duration kOwnPauseMin = absl::Seconds(1);
// A watch is answered after so long even without news, so that those of vanished watchers go away.
constexpr absl::Duration kWatchMax = absl::Seconds(30);
constexpr size_t kWatchesMax = 2 * kNodesMax;

std::string AskedBy(NodeId node) {
  return node == NodeId() ? "asked by hand" : absl::StrCat("asked by node ", node.value());
}

proto::LogRecord NewJob(const Config& config) {
  proto::LogRecord state;
  state.mutable_view()->set_job_name(config.job_name);
  state.mutable_view()->set_job(JobFingerprint(config.job_name));
  state.set_next_node(kSchedulerNode.Next().value());
  state.set_next_table(1);
  return state;
}

}  // namespace

SchedulerActor::SchedulerActor(const Config& config, std::optional<proto::LogRecord> recovered)
    : config_(config),
      state_(recovered ? *std::move(recovered) : NewJob(config)),
      groups_(config_, state_),
      membership_(config_, state_, groups_),
      stragglers_(config_, state_, groups_),
      tables_(state_),
      chains_(config_, state_),
      fleet_(state_, groups_),
      governor_(config_, state_, tables_),
      barriers_(state_),
      work_(state_),
      published_(state_.view()),
      watches_(kWatchesMax) {}

void SchedulerActor::Begin(absl::Time now) {
  if (started_ == absl::InfiniteFuture()) {
    started_ = now;
    membership_.Start(now);
    work_.Start(now);
    // What leases they had is not in the log.
    for (const proto::Node& node : state_.view().nodes()) {
      if (node.role() == proto::SERVER && node.state() == proto::Node::DEAD) {
        chains_.Fence(NodeId(node.id()), membership_.LeaseEnd(now));
      }
    }
    published_ = state_.view();
    if (state_.index() > 0) {
      trail_.Add(absl::ZeroDuration(),
                 absl::StrCat("scheduler restarted from record ", state_.index(), ", epoch ",
                              state_.view().epoch(), "; last decision: ", state_.decision()));
    }
  } else if (now - last_call_ > kOwnPauseMin) {
    membership_.Excuse(now - last_call_);
  }
  last_call_ = now;
  epoch_before_ = Epoch(state_.view().epoch());
}

void SchedulerActor::Finish(Outbox& outbox) {
  if (undurable_decisions_.empty() || writing_ || !disk_failure_.ok()) return;
  state_.set_index(state_.index() + 1);
  state_.set_decision(std::exchange(undurable_decisions_, ""));
  Message append;
  append.set_to({kSchedulerNode, kDiskLoop});
  append.envelope.mutable_disk_append()->set_index(state_.index());
  append.envelope.mutable_disk_append()->set_record(EncodeRecord(state_));
  written_view_ = state_.view();
  written_answers_ = std::exchange(later_answers_, {});
  writing_ = true;
  outbox.Send(std::move(append));
}

void SchedulerActor::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  Begin(now);
  Dispatch(now, message, outbox);
  SettleChains(now);
  Finish(outbox);
}

void SchedulerActor::Wake(absl::Time now, Outbox& outbox) {
  Begin(now);
  last_tick_ = now;
  if (!disk_failure_.ok()) return;
  for (const Membership::Death& death : membership_.FindDead(now)) {
    Decide(now, death.decision);
    chains_.Fence(death.node, death.lease_end);
    Forget(now, death.node, outbox);
  }
  Decide(now, groups_.Tick(now));
  for (const std::string& decision : stragglers_.Tick(now)) Decide(now, decision);
  std::vector<Barriers::Answer> withdrawn;
  barriers_.Expire(now, withdrawn);
  AnswerBarriers(std::move(withdrawn), outbox);
  std::vector<Work::Answer> reported;
  const Work::Change worked = work_.Tick(now, reported);
  TakeWorkChange(now, worked, std::move(reported), outbox);
  SettleChains(now);

  for (const Message& request : watches_.TakeExpired(now)) AnswerWatch(request, outbox);
  Finish(outbox);
}

absl::Time SchedulerActor::NextWake() const {
  if (started_ == absl::InfiniteFuture()) return absl::InfinitePast();
  if (!disk_failure_.ok()) return absl::InfiniteFuture();
  absl::Time next =
      std::min({membership_.NextDeath(), barriers_.NextDeadline(), work_.NextTick(), NextSettle()});
  if (next != absl::InfiniteFuture()) next = std::min(next, last_tick_ + kTick);
  return std::min(next, watches_.next_deadline());
}

void SchedulerActor::Dispatch(absl::Time now, const Message& message, Outbox& outbox) {
  if (message.envelope.has_disk_durable()) return TakeDiskAnswer(now, message, outbox);
  if (message.envelope.has_connection_lost()) return TakeConnectionLost(message, outbox);
  if (message.envelope.has_probe_reply()) return TakeProbeReply(now, message, outbox);
  const ControlMethod* const method = FindControlMethod(message.envelope);
  if (method == nullptr) return;
  if (const absl::Status status = Check(*method, message); !status.ok()) {
    return Refuse(message, status, outbox);
  }
  switch (message.envelope.body_case()) {
#define COVEY_DISPATCH(Rpc, Stem, stem, access) \
  case proto::Envelope::k##Stem##Request:       \
    return Rpc(now, message, outbox);
    COVEY_CONTROL_METHODS(COVEY_DISPATCH)
#undef COVEY_DISPATCH
    default:
      return;
  }
}

absl::Status SchedulerActor::Check(const ControlMethod& method, const Message& message) const {
  if (!disk_failure_.ok()) {
    return DiskStatus();
  }
  const uint64_t job = message.envelope.header().job();
  if (job != 0 && job != state_.view().job()) {
    return absl::InvalidArgumentError(
        absl::StrCat("this scheduler runs job '", config_.job_name,
                     "', the sender belongs to another one: check the scheduler's address"));
  }
  if (message.envelope.has_register_request()) return absl::OkStatus();
  if (message.from().node != NodeId()) {
    const absl::Status sender = membership_.CheckSender(message.from().node, message.incarnation());
    // A repeated goodbye is as good as the first.
    return message.envelope.has_leave_request() &&
                   membership_.HasLeft(message.from().node, message.incarnation())
               ? absl::OkStatus()
               : sender;
  }
  if (method.access == ControlAccess::kAnyone) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(BodyName(message.envelope), ": the sender has not registered; register first"));
}

absl::Status SchedulerActor::DiskStatus() const {
  return absl::UnavailableError(
      absl::StrCat("the scheduler cannot write its log and decides nothing any more: ",
                   disk_failure_.message()));
}

void SchedulerActor::Register(absl::Time now, const Message& message, Outbox& outbox) {
  const auto registration =
      membership_.Register(now, message.envelope.register_request(), message.incarnation());
  if (!registration.ok()) return Refuse(message, registration.status(), outbox);
  Decide(now, registration->decision);
  const bool is_server = message.envelope.register_request().role() == proto::SERVER;
  if (is_server && !registration->decision.empty()) chains_.Touch();
  SettleChains(now);  // The answer has the view.
  Message reply = MakeControlReply(message);
  proto::RegisterReply& body = *reply.envelope.mutable_register_reply();
  body.set_node(registration->node.value());
  body.set_rank(registration->rank);
  body.set_heartbeat_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(config_.heartbeat)));
  if (is_server) body.set_lease_ms(LeaseMs());
  *body.mutable_view() = state_.view();
  Answer(std::move(reply), outbox);
}

void SchedulerActor::Heartbeat(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::HeartbeatRequest& request = message.envelope.heartbeat_request();
  const NodeId node = message.from().node;
  membership_.Heartbeat(now, node, request);
  if (request.has_progress()) Decide(now, stragglers_.Hear(now, node, request.progress()));
  for (const std::string& decision : governor_.Hear(node, request.load())) Decide(now, decision);
  Message reply = MakeControlReply(message);
  proto::HeartbeatReply& body = *reply.envelope.mutable_heartbeat_reply();
  body.set_epoch(published_.epoch());
  if (request.has_load()) body.set_lease_ms(LeaseMs());
  outbox.Send(std::move(reply));
}

void SchedulerActor::WatchView(absl::Time now, const Message& message, Outbox& outbox) {
  if (published_.epoch() > message.envelope.watch_view_request().known_epoch()) {
    return AnswerWatch(message, outbox);
  }
  if (watches_.Add(message, now + kWatchMax)) return;
  Refuse(message,
         absl::ResourceExhaustedError(
             absl::StrCat("watch: ", kWatchesMax, " watchers wait already; try later")),
         outbox);
}

void SchedulerActor::CreateTable(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::TableSpec& spec = message.envelope.create_table_request().spec();
  // Placed once and for all, so the servers have to be complete.
  if (const absl::Status servers = membership_.CheckServers(); !servers.ok()) {
    return Refuse(message, Annotate(absl::StrCat("create table '", spec.name(), "'"), servers),
                  outbox);
  }
  const auto creation = tables_.Create(spec);
  if (!creation.ok()) return Refuse(message, creation.status(), outbox);
  Decide(now, creation->decision);
  if (!creation->decision.empty()) chains_.Touch();
  SettleChains(now);
  Message reply = MakeControlReply(message);
  proto::CreateTableReply& body = *reply.envelope.mutable_create_table_reply();
  body.set_table(creation->table.value());
  *body.mutable_view() = state_.view();
  Answer(std::move(reply), outbox);
}

void SchedulerActor::DropTable(absl::Time now, const Message& message, Outbox& outbox) {
  const auto decision = tables_.Drop(message.envelope.drop_table_request().name());
  if (!decision.ok()) return Refuse(message, decision.status(), outbox);
  Decide(now, *decision);
  chains_.Touch();
  Message reply = MakeControlReply(message);
  reply.envelope.mutable_drop_table_reply()->set_epoch(state_.view().epoch());
  Answer(std::move(reply), outbox);
}

void SchedulerActor::SetContract(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::SetContractRequest& request = message.envelope.set_contract_request();
  const auto change =
      tables_.SetContract(request.name(), request.contract(), AskedBy(message.from().node));
  if (!change.ok()) return Refuse(message, change.status(), outbox);
  Decide(now, change->decision);
  Message reply = MakeControlReply(message);
  reply.envelope.mutable_set_contract_reply()->set_epoch(change->epoch.value());
  Answer(std::move(reply), outbox);
}

void SchedulerActor::ListTables(absl::Time, const Message& message, Outbox& outbox) {
  Message reply = MakeControlReply(message);
  *reply.envelope.mutable_list_tables_reply()->mutable_tables() = state_.view().tables();
  Answer(std::move(reply), outbox);
}

void SchedulerActor::Barrier(absl::Time now, const Message& message, Outbox& outbox) {
  std::vector<Barriers::Answer> answers;
  Decide(now, barriers_.Arrive(now, message, answers));
  AnswerBarriers(std::move(answers), outbox);
}

void SchedulerActor::Leave(absl::Time now, const Message& message, Outbox& outbox) {
  const NodeId node = message.from().node;
  if (!membership_.HasLeft(node, message.incarnation())) {
    const absl::Status good =
        membership_.CheckGoodbye(node, Epoch(message.envelope.header().epoch()));
    if (!good.ok()) return Refuse(message, good, outbox);
    Decide(now, membership_.Leave(now, node, message.envelope.leave_request().reason()));
    Forget(now, node, outbox);
  }
  Answer(MakeControlReply(message), outbox);
}

void SchedulerActor::Forget(absl::Time now, NodeId node, Outbox& outbox) {
  chains_.Touch();
  stragglers_.Forget(node);
  governor_.Forget(node);
  std::vector<Barriers::Answer> withdrawn;
  barriers_.Forget(node, withdrawn);
  AnswerBarriers(std::move(withdrawn), outbox);
  std::vector<Work::Answer> lost;
  const Work::Change freed = work_.Forget(now, node, lost);
  TakeWorkChange(now, freed, std::move(lost), outbox);
}

void SchedulerActor::Drain(absl::Time now, const Message& message, Outbox& outbox) {
  const auto change = fleet_.Drain(message.envelope.drain_request(), AskedBy(message.from().node));
  if (!change.ok()) return Refuse(message, change.status(), outbox);
  Decide(now, change->decision);
  chains_.Touch();
  SettleChains(now);
  Message reply = MakeControlReply(message);
  reply.envelope.mutable_drain_reply()->set_epoch(change->epoch.value());
  Answer(std::move(reply), outbox);
}

void SchedulerActor::Scale(absl::Time now, const Message& message, Outbox& outbox) {
  const auto change = fleet_.Scale(message.envelope.scale_request(), AskedBy(message.from().node));
  if (!change.ok()) return Refuse(message, change.status(), outbox);
  Decide(now, change->decision);
  chains_.Touch();
  SettleChains(now);
  Message reply = MakeControlReply(message);
  reply.envelope.mutable_scale_reply()->set_epoch(change->epoch.value());
  Answer(std::move(reply), outbox);
}

void SchedulerActor::GetStatus(absl::Time now, const Message& message, Outbox& outbox) {
  Message reply = MakeControlReply(message);
  proto::StatusReply& body = *reply.envelope.mutable_status_reply();
  *body.mutable_view() = state_.view();
  membership_.FillStatus(now, body);
  stragglers_.FillStatus(body);
  trail_.CopyAfter(message.envelope.status_request().events_after(), body);
  body.set_uptime_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(now - started_)));
  Answer(std::move(reply), outbox);
}

void SchedulerActor::ReportReplicas(absl::Time now, const Message& message, Outbox& outbox) {
  bool changed = false;
  for (const proto::ReplicaReport& report : message.envelope.replica_report_request().reports()) {
    changed = chains_.Report(now, message.from().node, report, epoch_before_) || changed;
  }
  if (changed) Note("reports on replicas");
  SettleChains(now);
  Answer(MakeControlReply(message), outbox);
}

void SchedulerActor::SettleChains(absl::Time now) {
  if (now >= NextSettle()) Decide(now, chains_.Settle(now, epoch_before_));
}

absl::Time SchedulerActor::NextSettle() const {
  return writing_ ? absl::InfiniteFuture() : chains_.NextSettle();
}

void SchedulerActor::GetWork(absl::Time now, const Message& message, Outbox& outbox) {
  std::vector<Work::Answer> answers;
  const Work::Change change = work_.Take(now, message, answers);
  TakeWorkChange(now, change, std::move(answers), outbox);
}

void SchedulerActor::TakeWorkChange(absl::Time now, const Work::Change& change,
                                    std::vector<Work::Answer> answers, Outbox& outbox) {
  Decide(now, change.decision);
  Note(change.record);
  for (Work::Answer& answer : answers) {
    Message reply = MakeControlReply(answer.request);
    *reply.envelope.mutable_work_reply() = std::move(answer.reply);
    SetStatus(answer.status, reply);
    Answer(std::move(reply), outbox);
  }
}

void SchedulerActor::TakeDiskAnswer(absl::Time now, const Message& message, Outbox& outbox) {
  if (message.envelope.from_loop() != kDiskLoop || !writing_ ||
      message.envelope.disk_durable().index() != state_.index()) {
    return;
  }
  writing_ = false;
  std::vector<Message> answers = std::exchange(written_answers_, {});
  disk_failure_ = StatusOf(message);
  if (disk_failure_.ok()) {
    published_ = std::exchange(written_view_, {});
    for (Message& answer : answers) {
      if (answer.envelope.has_register_reply()) {
        membership_.Answered(now, NodeId(answer.envelope.register_reply().node()));
      }
      outbox.Send(std::move(answer));
    }
  } else {
    // Nobody may know what is not durable; readers ignore the body of a failed reply.
    for (std::vector<Message>* waiting : {&answers, &later_answers_}) {
      for (Message& answer : *waiting) {
        SetStatus(DiskStatus(), answer);
        outbox.Send(std::move(answer));
      }
      waiting->clear();
    }
    return;
  }
  for (const Message& request : watches_.TakeOlderThan(Epoch(published_.epoch()))) {
    AnswerWatch(request, outbox);
  }
}

void SchedulerActor::TakeConnectionLost(const Message& message, Outbox& outbox) {
  auto probe = membership_.ConnectionLost(message.envelope.connection_lost());
  if (!probe || !disk_failure_.ok()) return;
  Message request;
  request.set_to({kSchedulerNode, kProbeLoop});
  *request.envelope.mutable_probe_request() = *std::move(probe);
  outbox.Send(std::move(request));
}

void SchedulerActor::TakeProbeReply(absl::Time now, const Message& message, Outbox& outbox) {
  if (message.envelope.from_loop() != kProbeLoop || !disk_failure_.ok()) return;
  const auto death = membership_.TakeProbeReply(now, message.envelope.probe_reply());
  if (!death) return;
  Decide(now, death->decision);
  Forget(now, death->node, outbox);
}

void SchedulerActor::Decide(absl::Time now, const std::string& decision) {
  if (decision.empty()) return;
  Note(decision);
  trail_.Add(now - started_, decision);
  if (on_decision_) on_decision_(decision);
}

void SchedulerActor::Note(const std::string& decision) {
  if (decision.empty()) return;
  absl::StrAppend(&undurable_decisions_, undurable_decisions_.empty() ? "" : "; ", decision);
}

void SchedulerActor::Answer(Message reply, Outbox& outbox) {
  if (Planted(PlantedBug::kAnswerBeforeLogged)) {
    outbox.Send(std::move(reply));
  } else if (!undurable_decisions_.empty()) {
    later_answers_.push_back(std::move(reply));
  } else if (writing_) {
    written_answers_.push_back(std::move(reply));
  } else {
    outbox.Send(std::move(reply));
  }
}

void SchedulerActor::Refuse(const Message& request, const absl::Status& status, Outbox& outbox) {
  Message reply = MakeControlReply(request);
  SetStatus(status, reply);
  Answer(std::move(reply), outbox);
}

void SchedulerActor::AnswerBarriers(std::vector<Barriers::Answer> answers, Outbox& outbox) {
  for (const Barriers::Answer& answer : answers) {
    Message reply = MakeControlReply(answer.request);
    SetStatus(answer.status, reply);
    Answer(std::move(reply), outbox);
  }
}

void SchedulerActor::AnswerWatch(const Message& request, Outbox& outbox) const {
  Message reply = MakeControlReply(request);
  *reply.envelope.mutable_watch_view_reply()->mutable_view() = published_;
  outbox.Send(std::move(reply));
}

}  // namespace covey::scheduler
