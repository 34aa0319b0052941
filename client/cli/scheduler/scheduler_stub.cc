// SPDX-License-Identifier: Apache-2.0
#include "client/cli/scheduler/scheduler_stub.h"

#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/net/scheduler_failover.h"
#include "common/security/tls_credentials.h"
#include "common/security/wall_clock.h"
#include "proto/scheduler_service.grpc.pb.h"

namespace covey::cli {
namespace {

std::shared_ptr<grpc::Channel> MakeChannel(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kControlEnvelopeBytesMax);
  // Network proxies must not be used between two processes of a cluster.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A restarted scheduler is found soon, however long it was away.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

gpr_timespec Within(absl::Duration duration) {
  return gpr_time_from_millis(absl::ToInt64Milliseconds(duration), GPR_TIMESPAN);
}

gpr_timespec Deadline() { return Within(SchedulerStub::kDeadline); }

absl::Status NobodyAnswers(const std::string& addresses) {
  return absl::UnavailableError(absl::StrCat("no scheduler answers at ", addresses, " within ",
                                             absl::FormatDuration(SchedulerStub::kDeadline),
                                             "; is it running, is this its port, and do both "
                                             "or neither have --tls?"));
}

absl::Status ToStatus(const grpc::Status& status, const grpc::ClientContext& context,
                      const std::string& address) {
  if (status.ok()) return absl::OkStatus();
  if (ShouldTryAnother(status, context) && !IsFromScheduler(status, context))
    return NobodyAnswers(address);
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      absl::StrCat("scheduler at ", address, ": ", status.error_message()));
}

absl::StatusOr<std::shared_ptr<const TlsCredentials>> FindCredentials(const std::string& folder) {
  if (folder.empty()) return nullptr;
  COVEY_ASSIGN_OR_RETURN(TlsCredentials credentials, TlsCredentials::Load(folder, WallClockNow()));
  return std::make_shared<const TlsCredentials>(std::move(credentials));
}

// In the order given; queries start with the one that answered last.
struct Schedulers {
  struct Scheduler {
    std::string address;
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<proto::Scheduler::Stub> stub;
  };

  explicit Schedulers(const SchedulerTarget& target)
      : addresses(target.addresses), tls(FindCredentials(target.tls)) {
    const std::shared_ptr<grpc::ChannelCredentials> credentials =
        tls.ok() && *tls != nullptr ? (*tls)->ForSchedulersOf((*tls)->identity().job)
                                    : grpc::InsecureChannelCredentials();
    for (const std::string& address : SplitSchedulers(addresses)) {
      auto channel = MakeChannel(address, credentials);
      auto stub = proto::Scheduler::NewStub(channel);
      all.push_back({.address = address, .channel = std::move(channel), .stub = std::move(stub)});
    }
  }
  void AskTheNext() { current = (current + 1) % all.size(); }
  // What the user is told of a call that failed with `status`.
  absl::Status Explain(const absl::Status& status) const {
    return WithReason(status, tls.ok() ? tls->get() : nullptr, WallClockNow());
  }

  const std::string addresses;
  // Null = none. When not OK, no call is made.
  const absl::StatusOr<std::shared_ptr<const TlsCredentials>> tls;
  std::vector<Scheduler> all;
  size_t current = 0;
};

}  // namespace

struct SchedulerStub::Connection : Schedulers {
  using Schedulers::Schedulers;

  template <typename Request, typename Reply>
  absl::StatusOr<Reply> Ask(grpc::Status (proto::Scheduler::Stub::*method)(grpc::ClientContext*,
                                                                           const Request&, Reply*),
                            const Request& request) {
    COVEY_RETURN_IF_ERROR(tls.status());
    // The error of a standby, which says more than that of a silent scheduler.
    absl::Status stands_by;
    for (size_t attempt = 0; attempt < all.size(); ++attempt) {
      const Scheduler& asked = all[current];
      grpc::ClientContext context;
      context.set_deadline(Deadline());
      Reply reply;
      const grpc::Status status = (asked.stub.get()->*method)(&context, request, &reply);
      if (status.ok()) return reply;
      const absl::Status outcome = ToStatus(status, context, asked.address);
      if (!ShouldTryAnother(status, context)) return outcome;
      if (IsFromScheduler(status, context)) stands_by = outcome;
      AskTheNext();
    }
    return stands_by.ok() ? Explain(NobodyAnswers(addresses)) : stands_by;
  }
};

SchedulerStub::SchedulerStub(const SchedulerTarget& target)
    : connection_(std::make_unique<Connection>(target)) {}

SchedulerStub::~SchedulerStub() = default;

bool SchedulerStub::AwaitConnection(absl::Duration timeout) {
  return connection_->all[connection_->current].channel->WaitForConnected(
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), Within(timeout)));
}

absl::StatusOr<proto::StatusReply> SchedulerStub::GetStatus() {
  return connection_->Ask(&proto::Scheduler::Stub::GetStatus, proto::StatusRequest());
}

absl::StatusOr<proto::ListTablesReply> SchedulerStub::ListTables() {
  return connection_->Ask(&proto::Scheduler::Stub::ListTables, proto::ListTablesRequest());
}

absl::StatusOr<proto::SetContractReply> SchedulerStub::SetContract(
    const std::string& table, const proto::Contract& contract) {
  proto::SetContractRequest request;
  request.set_name(table);
  *request.mutable_contract() = contract;
  return connection_->Ask(&proto::Scheduler::Stub::SetContract, request);
}

absl::StatusOr<proto::DrainReply> SchedulerStub::Drain(const proto::DrainRequest& request) {
  return connection_->Ask(&proto::Scheduler::Stub::Drain, request);
}

absl::StatusOr<proto::ScaleReply> SchedulerStub::Scale(const proto::ScaleRequest& request) {
  return connection_->Ask(&proto::Scheduler::Stub::Scale, request);
}

absl::StatusOr<proto::QuarantineReply> SchedulerStub::Quarantine(
    const proto::QuarantineRequest& request) {
  return connection_->Ask(&proto::Scheduler::Stub::Quarantine, request);
}

absl::StatusOr<proto::CreateSnapshotReply> SchedulerStub::CreateSnapshot() {
  return connection_->Ask(&proto::Scheduler::Stub::CreateSnapshot, proto::CreateSnapshotRequest());
}

absl::StatusOr<proto::RestoreTablesReply> SchedulerStub::RestoreTables(
    const proto::RestoreTablesRequest& request) {
  return connection_->Ask(&proto::Scheduler::Stub::RestoreTables, request);
}

absl::StatusOr<proto::StartTraceReply> SchedulerStub::StartTrace(
    const proto::StartTraceRequest& request) {
  return connection_->Ask(&proto::Scheduler::Stub::StartTrace, request);
}

absl::StatusOr<proto::TraceReply> SchedulerStub::GetTrace(const proto::TraceRequest& request) {
  return connection_->Ask(&proto::Scheduler::Stub::GetTrace, request);
}

struct StatusPoller::Connection : Schedulers {
  using Schedulers::Schedulers;
};

struct StatusPoller::Call {
  grpc::ClientContext context;
  proto::StatusRequest request;
  proto::StatusReply reply;
  grpc::Status status;
};

StatusPoller::StatusPoller(const SchedulerTarget& target)
    : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      connection_(std::make_unique<Connection>(target)) {
  COVEY_CHECK(descriptor_ >= 0);
}

StatusPoller::~StatusPoller() {
  if (call_) {
    call_->context.TryCancel();
    pollfd answered = {.fd = descriptor_, .events = POLLIN, .revents = 0};
    while (!Take()) poll(&answered, 1, /*timeout=*/-1);
  }
  close(descriptor_);
}

void StatusPoller::Ask() {
  if (call_) return;
  call_ = std::make_unique<Call>();
  if (!connection_->tls.ok()) {
    call_->status = {static_cast<grpc::StatusCode>(connection_->tls.status().code()),
                     std::string(connection_->tls.status().message())};
    eventfd_write(descriptor_, 1);
    return;
  }
  call_->context.set_deadline(Deadline());
  call_->request.set_events_after(last_event_);
  connection_->all[connection_->current].stub->async()->GetStatus(
      &call_->context, &call_->request, &call_->reply, [this](grpc::Status status) {
        call_->status = std::move(status);
        eventfd_write(descriptor_, 1);
      });
}

std::optional<absl::StatusOr<proto::StatusReply>> StatusPoller::Take() {
  eventfd_t count;
  if (eventfd_read(descriptor_, &count) != 0) return std::nullopt;
  const std::unique_ptr<Call> call = std::move(call_);
  if (!call->status.ok()) {
    const std::string& asked = connection_->all[connection_->current].address;
    const absl::Status outcome = ToStatus(call->status, call->context, asked);
    if (ShouldTryAnother(call->status, call->context)) connection_->AskTheNext();
    return outcome;
  }
  const proto::StatusReply& reply = call->reply;
  if (!reply.events().empty()) last_event_ = reply.events().rbegin()->sequence();
  // The restarted scheduler's events begin with 1 again; those missing from this reply come with
  // the next.
  if (reply.uptime_ms() < uptime_ms_) last_event_ = 0;
  uptime_ms_ = reply.uptime_ms();
  return std::move(call->reply);
}

}  // namespace covey::cli
