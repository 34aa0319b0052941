// SPDX-License-Identifier: Apache-2.0
#include "client/engine/connection.h"

#include <unistd.h>

#include <utility>
#include <variant>

#include "common/base/log.h"
#include "common/base/random.h"
#include "common/base/set_once.h"
#include "common/base/status_macros.h"
#include "common/metrics/process_metrics.h"
#include "common/net/grpc_channel.h"
#include "common/net/host_transport.h"
#include "common/runtime/process_main.h"
#include "common/runtime/topology_labels.h"
#include "common/security/tls_credentials.h"
#include "common/security/wall_clock.h"

namespace covey::client {
namespace {

constexpr char kThreadName[] = "covey-client";
constexpr absl::Duration kLeaveMax = absl::Seconds(2);
constexpr absl::Duration kFlushMax = absl::Seconds(2);
// A request's own deadline expires on the loop; the caller waits a little longer for the result.
constexpr absl::Duration kGrace = absl::Seconds(1);

absl::Status LoopIsGone() {
  return absl::UnavailableError(
      "the client is shutting down or its request queue is full; retry later");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const ClientConfig& config,
                                                             const Options& options) {
  COVEY_RETURN_IF_ERROR(config.Validate());
  auto connection = std::unique_ptr<Connection>(new Connection);
  const IdentityRole role =
      options.role == proto::WORKER ? IdentityRole::kWorker : IdentityRole::kClient;
  COVEY_ASSIGN_OR_RETURN(
      connection->tls_,
      LoadTlsCredentials(config.tls, {.role = role, .job = config.job, .rank = config.rank},
                         WallClockNow()));
  if (connection->tls_ != nullptr) {
    COVEY_ASSIGN_OR_RETURN(connection->keys_, DataKeys::Make(JobFingerprint(config.job)));
  }
  COVEY_ASSIGN_OR_RETURN(
      connection->transport_,
      MakeHostTransport({.zmq = {.listen = options.listen, .keys = connection->keys_},
                         .shared_memory = options.shared_memory}));

  const Incarnation incarnation(RandomFromSystem());
  ClientActor::Options actor_options;
  Member::Options& member = actor_options.member;
  member.job_name = config.job;
  member.role = options.role;
  member.rank =
      connection->tls_ == nullptr ? config.rank : connection->tls_->RankOr(role, config.rank);
  member.labels = config.labels;
  if (options.role == proto::WORKER) {
    COVEY_ASSIGN_OR_RETURN(member.labels, FindTopologyLabels(config.labels));
  }
  if (!options.listen.empty()) member.endpoints = {connection->transport_->endpoint()};
  member.process_id = static_cast<uint64_t>(getpid());
  member.host = HostName();
  if (connection->keys_ != nullptr) member.data_key = connection->keys_->public_key();
  member.scheduler = config.scheduler;
  member.register_deadline = config.join_deadline;
  member.seed = RandomFromSystem();
  member.trace = &connection->trace_;
  actor_options.client.incarnation = incarnation;
  actor_options.client.bytes_in_flight_max = config.bytes_in_flight_max;
  actor_options.client.seed = RandomFromSystem();
  actor_options.client.push_lost = [](const absl::Status& why) {
    LogWarning("push_lost", {{"reason", why.message()}});
  };

  if (options.make_actor) {
    LoopActor made = options.make_actor(actor_options);
    connection->actor_ = std::move(made.actor);
    connection->client_ = made.client;
  } else {
    auto actor = std::make_unique<ClientActor>(actor_options);
    connection->client_ = actor.get();
    connection->actor_ = std::move(actor);
  }

  const EventLoop::Options loop_options{.job = JobFingerprint(config.job),
                                        .self = {},
                                        .incarnation = incarnation,
                                        .thread_name = kThreadName,
                                        .caller_spin = config.spin,
                                        .trace = &connection->trace_.AddThread("loop"),
                                        .own_returns_after = options.own_returns_after};
  connection->loop_ =
      std::make_unique<EventLoop>(loop_options, *connection->actor_, *connection->transport_);
  EventLoop& loop = *connection->loop_;
  connection->scheduler_ = std::make_unique<GrpcChannel>(
      GrpcChannel::Options{
          .scheduler = config.scheduler, .tls = connection->tls_, .job = config.job},
      [&loop](Message reply) { loop.Deliver(std::move(reply)); });
  loop.AddPort({kSchedulerNode, 0}, *connection->scheduler_);

  Connection& self = *connection;
  self.client_->OnChange([&self, job = loop_options.job](absl::Time, Outbox&) {
    const Member& member = self.client_->member();
    if (self.keys_ != nullptr) self.keys_->Follow(member.node(), *member.view());
    self.loop_->SetIdentity(job, member.node());
    self.loop_->SetEpoch(member.view()->epoch());
    MutexLock lock(self.mutex_);
    self.membership_ = member.state();
    self.failure_ = member.failure();
    self.membership_changed_.NotifyAll();
  });
  loop.Start();
  COVEY_RETURN_IF_ERROR(connection->StartMetrics(options.metrics));
  COVEY_RETURN_IF_ERROR(
      connection->AwaitMembership(config.join_deadline + kGrace, options.gives_up));
  COVEY_RETURN_IF_ERROR(connection->Run([&self](absl::Time, Outbox&) {
    self.node_ = self.client_->member().node();
    self.rank_ = self.client_->member().rank();
  }));
  return connection;
}

absl::Status Connection::StartMetrics(MetricsServer::Options options) {
  if (options.address.empty()) return absl::OkStatus();
  options.fill = [this, fill = std::move(options.fill)](absl::Time now, MetricPage& page) {
    AddMessageMetrics(loop_->counters(), page);
    AddBusyTime(loop_->busy(), page);
    fill(now, page);
  };
  COVEY_ASSIGN_OR_RETURN(metrics_,
                         MetricsServer::Start(std::move(options), kThreadName, PostTo(*loop_)));
  return absl::OkStatus();
}

absl::Status Connection::AwaitMembership(absl::Duration timeout,
                                         const std::function<bool()>& gives_up) {
  const absl::Time until = MonotonicNow() + timeout;
  const absl::Duration ask_every = gives_up ? kAskEvery : absl::InfiniteDuration();
  const auto is_waiting = [&] {
    MutexLock lock(mutex_);
    if (membership_ == Member::State::kRegistering) {
      membership_changed_.WaitFor(mutex_, std::min(ask_every, until - MonotonicNow()));
    }
    return membership_ == Member::State::kRegistering && MonotonicNow() < until;
  };
  while (is_waiting()) {
    if (gives_up && gives_up())
      return absl::CancelledError("gave up before the scheduler had registered it");
  }
  MutexLock lock(mutex_);
  if (membership_ == Member::State::kMember) return absl::OkStatus();
  if (!failure_.ok()) return WithReason(failure_, tls_.get(), WallClockNow());
  return WithReason(absl::UnavailableError("the scheduler did not answer in time; check that it "
                                           "runs and its address"),
                    tls_.get(), WallClockNow());
}

Connection::~Connection() {
  if (loop_ == nullptr) return;
  const absl::Status kept = FlushPushes(RequestEngine::FlushScope::kReceived, kFlushMax);
  if (!kept.ok()) LogWarning("closed_before_durable", {{"reason", kept.message()}});
  // Each pending operation ends, and its caller gets its memory back, before the loop stops.
  Post([this](absl::Time now, Outbox& outbox) {
    const absl::Status closed = absl::CancelledError("the client was closed before this was done");
    client_->engine().FailAll(now, closed, outbox);
    client_->control().FailAll(now, closed, outbox);
    client_->member().Leave(now, "done", outbox);
  });
  {
    const absl::Time until = MonotonicNow() + kLeaveMax;
    MutexLock lock(mutex_);
    while (membership_ == Member::State::kMember && MonotonicNow() < until) {
      membership_changed_.WaitFor(mutex_, until - MonotonicNow());
    }
  }
  for (bool idle = false; !idle;) {
    if (!Run([this, &idle](absl::Time, Outbox&) {
           idle = client_->engine().operations() == 0;
         }).ok())
      break;
  }
  loop_->Stop();
  scheduler_.reset();  // Its last answers go to the loop's queue, so it ends before the loop does.
}

absl::Status Connection::Run(std::function<void(absl::Time, Outbox&)> work) {
  const SetOnce<std::monostate> done;
  const bool posted = Post([work = std::move(work), done](absl::Time now, Outbox& outbox) {
    work(now, outbox);
    done.Set(std::monostate());
  });
  if (!posted) return LoopIsGone();
  // The loop never blocks, so this wait is short. A loop that stops meanwhile drops its queue.
  return done.WaitFor(absl::Minutes(1)) != nullptr ? absl::OkStatus() : LoopIsGone();
}

absl::StatusOr<proto::Envelope> Connection::Request(proto::Envelope request,
                                                    absl::Duration timeout) {
  using Answer = absl::StatusOr<proto::Envelope>;
  const SetOnce<Answer> answer;
  const bool posted =
      Post([this, request = std::move(request), timeout, answer](absl::Time now, Outbox& outbox) {
        client_->control().Start(
            now, request, now + timeout,
            [answer](absl::Time, const absl::Status& status, const proto::Envelope* reply,
                     Outbox&) { answer.Set(status.ok() ? Answer(*reply) : Answer(status)); },
            outbox);
      });
  if (!posted) return LoopIsGone();
  const Answer* result = answer.WaitFor(timeout + kGrace);
  return result != nullptr ? *result : LoopIsGone();
}

absl::Status Connection::Flush(absl::Duration timeout) {
  return FlushPushes(RequestEngine::FlushScope::kAll, timeout);
}

absl::Status Connection::FlushPushes(RequestEngine::FlushScope scope, absl::Duration timeout) {
  const SetOnce<absl::Status> flushed;
  const bool posted = Post([this, scope, timeout, flushed](absl::Time now, Outbox& outbox) {
    client_->engine().Flush(
        now, scope, now + timeout,
        [flushed](absl::Time, const absl::Status& status, Outbox&) { flushed.Set(status); },
        outbox);
  });
  if (!posted) return LoopIsGone();
  const absl::Status* result = flushed.WaitFor(timeout + kGrace);
  return result != nullptr ? *result : LoopIsGone();
}

absl::StatusOr<bool> Connection::InitializeTables(std::vector<NamedValues> tables,
                                                  absl::Duration timeout) {
  COVEY_RETURN_IF_ERROR(CheckNamedValues(tables));
  const SetOnce<absl::StatusOr<bool>> initialized;
  const bool posted = Post(
      [this, tables = std::move(tables), timeout, initialized](absl::Time now, Outbox& outbox) {
        client_->initializations().Start(
            now, tables, now + timeout,
            [initialized](absl::Time, const absl::Status& status, bool given, Outbox&) {
              initialized.Set(status.ok() ? absl::StatusOr<bool>(given) : status);
            },
            outbox);
      });
  if (!posted) return LoopIsGone();
  const absl::StatusOr<bool>* result = initialized.WaitFor(timeout + kGrace);
  return result != nullptr ? *result : LoopIsGone();
}

absl::Status Connection::Barrier(absl::string_view name, uint32_t participants,
                                 absl::Duration timeout) {
  proto::Envelope request;
  proto::BarrierRequest& body = *request.mutable_barrier_request();
  body.set_name(std::string(name));
  body.set_participants(participants);
  body.set_deadline_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(timeout)));
  // The scheduler's own deadline expires first: its error names the missing participants.
  return Request(std::move(request), timeout + kGrace).status();
}

}  // namespace covey::client
