#include "client/cli/scheduler_stub.h"

#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/cluster/limits.h"
#include "proto/scheduler_service.grpc.pb.h"

namespace covey::cli {
namespace {

std::unique_ptr<proto::Scheduler::Stub> MakeStub(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kControlEnvelopeBytesMax);
  // A proxy for the network has no business between two processes of a cluster.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return proto::Scheduler::NewStub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
}

gpr_timespec Deadline() {
  return gpr_time_from_millis(absl::ToInt64Milliseconds(SchedulerStub::kDeadline), GPR_TIMESPAN);
}

absl::Status ToStatus(const grpc::Status& status, const std::string& address) {
  if (status.ok()) return absl::OkStatus();
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE ||
      status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return absl::UnavailableError(absl::StrCat("no scheduler answers at ", address, " within ",
                                               absl::FormatDuration(SchedulerStub::kDeadline),
                                               "; is it running, and is this its port?"));
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      absl::StrCat("scheduler at ", address, ": ", status.error_message()));
}

}  // namespace

struct SchedulerStub::Connection {
  std::string address;
  std::unique_ptr<proto::Scheduler::Stub> stub;
};

SchedulerStub::SchedulerStub(const std::string& address)
    : connection_(std::make_unique<Connection>(Connection{address, MakeStub(address)})) {}

SchedulerStub::~SchedulerStub() = default;

absl::StatusOr<proto::StatusReply> SchedulerStub::GetStatus() {
  grpc::ClientContext context;
  context.set_deadline(Deadline());
  proto::StatusReply reply;
  const grpc::Status status =
      connection_->stub->GetStatus(&context, proto::StatusRequest(), &reply);
  if (!status.ok()) return ToStatus(status, connection_->address);
  return reply;
}

absl::StatusOr<proto::ListTablesReply> SchedulerStub::ListTables() {
  grpc::ClientContext context;
  context.set_deadline(Deadline());
  proto::ListTablesReply reply;
  const grpc::Status status =
      connection_->stub->ListTables(&context, proto::ListTablesRequest(), &reply);
  if (!status.ok()) return ToStatus(status, connection_->address);
  return reply;
}

absl::StatusOr<proto::SetContractReply> SchedulerStub::SetContract(
    const std::string& table, const proto::Contract& contract) {
  grpc::ClientContext context;
  context.set_deadline(Deadline());
  proto::SetContractRequest request;
  request.set_name(table);
  *request.mutable_contract() = contract;
  proto::SetContractReply reply;
  const grpc::Status status = connection_->stub->SetContract(&context, request, &reply);
  if (!status.ok()) return ToStatus(status, connection_->address);
  return reply;
}

absl::StatusOr<proto::DrainReply> SchedulerStub::Drain(const proto::DrainRequest& request) {
  grpc::ClientContext context;
  context.set_deadline(Deadline());
  proto::DrainReply reply;
  const grpc::Status status = connection_->stub->Drain(&context, request, &reply);
  if (!status.ok()) return ToStatus(status, connection_->address);
  return reply;
}

absl::StatusOr<proto::ScaleReply> SchedulerStub::Scale(const proto::ScaleRequest& request) {
  grpc::ClientContext context;
  context.set_deadline(Deadline());
  proto::ScaleReply reply;
  const grpc::Status status = connection_->stub->Scale(&context, request, &reply);
  if (!status.ok()) return ToStatus(status, connection_->address);
  return reply;
}

struct StatusPoller::Connection {
  std::string address;
  std::unique_ptr<proto::Scheduler::Stub> stub;
};

struct StatusPoller::Call {
  grpc::ClientContext context;
  proto::StatusRequest request;
  proto::StatusReply reply;
  grpc::Status status;
};

StatusPoller::StatusPoller(const std::string& address)
    : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      connection_(std::make_unique<Connection>(Connection{address, MakeStub(address)})) {
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
  call_->context.set_deadline(Deadline());
  call_->request.set_events_after(last_event_);
  connection_->stub->async()->GetStatus(&call_->context, &call_->request, &call_->reply,
                                        [this](grpc::Status status) {
                                          call_->status = std::move(status);
                                          eventfd_write(descriptor_, 1);
                                        });
}

std::optional<absl::StatusOr<proto::StatusReply>> StatusPoller::Take() {
  eventfd_t count;
  if (eventfd_read(descriptor_, &count) != 0) return std::nullopt;
  const std::unique_ptr<Call> call = std::move(call_);
  if (!call->status.ok()) return ToStatus(call->status, connection_->address);
  if (!call->reply.events().empty()) last_event_ = call->reply.events().rbegin()->sequence();
  return std::move(call->reply);
}

}  // namespace covey::cli
