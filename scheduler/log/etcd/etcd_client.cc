// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/etcd/etcd_client.h"

#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "scheduler/log/etcd/etcd.grpc.pb.h"

namespace covey::scheduler {
namespace {

constexpr int kMessageBytesMax = 64 << 20;
constexpr int kReconnectFirstMilliseconds = 50;
constexpr int kReconnectLongestMilliseconds = 300;
constexpr int kConnectMilliseconds = 500;

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectFirstMilliseconds);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMilliseconds);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectLongestMilliseconds);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

absl::Status ToStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

// Another endpoint may succeed.
bool ShouldTryAnother(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status);
}

}  // namespace

struct EtcdClient::Endpoint {
  explicit Endpoint(const Options& options, const std::string& address)
      : attempt(options.attempt),
        address(address),
        channel(MakeChannel(address)),
        values(etcdserverpb::KV::NewStub(channel)),
        leases(etcdserverpb::Lease::NewStub(channel)) {}

  void SetDeadline(grpc::ClientContext& context) const {
    context.set_deadline(gpr_time_from_micros(absl::ToInt64Microseconds(attempt), GPR_TIMESPAN));
  }

  const absl::Duration attempt;
  const std::string address;
  const std::shared_ptr<grpc::Channel> channel;
  const std::unique_ptr<etcdserverpb::KV::Stub> values;
  const std::unique_ptr<etcdserverpb::Lease::Stub> leases;
};

EtcdClient::EtcdClient(const Options& options) : options_(options) {
  COVEY_CHECK(!options.endpoints.empty());
  for (const std::string& address : options.endpoints) {
    endpoints_.push_back(std::make_unique<Endpoint>(options, address));
  }
}

EtcdClient::~EtcdClient() = default;

absl::Status EtcdClient::Call(absl::FunctionRef<absl::Status(Endpoint&)> attempt) {
  absl::Status status;
  for (size_t tried = 0; tried < endpoints_.size(); ++tried) {
    Endpoint& endpoint = *endpoints_[current_];
    status = attempt(endpoint);
    if (!ShouldTryAnother(status)) {
      return Annotate(absl::StrCat("etcd at ", endpoint.address), status);
    }
    current_ = (current_ + 1) % endpoints_.size();
  }
  return absl::UnavailableError(absl::StrCat(
      "etcd at ", absl::StrJoin(options_.endpoints, ","), " does not answer: ", status.message(),
      "; check that a majority of it runs and can be reached"));
}

absl::StatusOr<etcdserverpb::RangeResponse> EtcdClient::Range(
    const etcdserverpb::RangeRequest& request) {
  etcdserverpb::RangeResponse response;
  COVEY_RETURN_IF_ERROR(Call([&](Endpoint& endpoint) {
    grpc::ClientContext context;
    endpoint.SetDeadline(context);
    return ToStatus(endpoint.values->Range(&context, request, &response));
  }));
  return response;
}

absl::StatusOr<etcdserverpb::TxnResponse> EtcdClient::Txn(const etcdserverpb::TxnRequest& request) {
  etcdserverpb::TxnResponse response;
  COVEY_RETURN_IF_ERROR(Call([&](Endpoint& endpoint) {
    grpc::ClientContext context;
    endpoint.SetDeadline(context);
    return ToStatus(endpoint.values->Txn(&context, request, &response));
  }));
  // Callers look at the answer to each operation.
  const int operations = response.succeeded() ? request.success_size() : request.failure_size();
  if (response.responses_size() == operations) return response;
  return absl::DataLossError(
      absl::StrCat("etcd at ", absl::StrJoin(options_.endpoints, ","), " answers ",
                   response.responses_size(), " of ", operations,
                   " operations of a transaction; name the endpoints of an etcd of version 3"));
}

absl::Status EtcdClient::Compact(int64_t revision) {
  etcdserverpb::CompactionRequest request;
  request.set_revision(revision);
  return Call([&](Endpoint& endpoint) {
    grpc::ClientContext context;
    endpoint.SetDeadline(context);
    etcdserverpb::CompactionResponse response;
    return ToStatus(endpoint.values->Compact(&context, request, &response));
  });
}

absl::StatusOr<EtcdClient::GrantedLease> EtcdClient::Grant(absl::Duration time_to_live) {
  etcdserverpb::LeaseGrantRequest request;
  request.set_ttl(
      std::max<int64_t>(1, absl::ToInt64Seconds(absl::Ceil(time_to_live, absl::Seconds(1)))));
  etcdserverpb::LeaseGrantResponse response;
  COVEY_RETURN_IF_ERROR(Call([&](Endpoint& endpoint) {
    grpc::ClientContext context;
    endpoint.SetDeadline(context);
    return ToStatus(endpoint.leases->LeaseGrant(&context, request, &response));
  }));
  if (!response.error().empty()) return absl::UnavailableError(response.error());
  return GrantedLease{.id = response.id(), .time_to_live = absl::Seconds(response.ttl())};
}

absl::StatusOr<absl::Duration> EtcdClient::KeepAlive(int64_t lease) {
  etcdserverpb::LeaseKeepAliveRequest request;
  request.set_id(lease);
  etcdserverpb::LeaseKeepAliveResponse response;
  COVEY_RETURN_IF_ERROR(Call([&](Endpoint& endpoint) {
    grpc::ClientContext context;
    endpoint.SetDeadline(context);
    const auto stream = endpoint.leases->LeaseKeepAlive(&context);
    const bool answered = stream->Write(request) && stream->WritesDone() && stream->Read(&response);
    const absl::Status end = ToStatus(stream->Finish());
    if (answered) return absl::OkStatus();
    return end.ok() ? absl::UnavailableError("the stream ended without an answer") : end;
  }));
  return absl::Seconds(std::max<int64_t>(0, response.ttl()));
}

absl::Status EtcdClient::Revoke(int64_t lease) {
  etcdserverpb::LeaseRevokeRequest request;
  request.set_id(lease);
  return Call([&](Endpoint& endpoint) {
    grpc::ClientContext context;
    endpoint.SetDeadline(context);
    etcdserverpb::LeaseRevokeResponse response;
    return ToStatus(endpoint.leases->LeaseRevoke(&context, request, &response));
  });
}

}  // namespace covey::scheduler
