// SPDX-License-Identifier: Apache-2.0
#include "common/net/grpc_channel.h"

#include <grpcpp/security/credentials.h>

#include <utility>

#include "common/net/grpc/control_calls.h"
#include "common/net/grpc/view_watch.h"
#include "common/security/tls_credentials.h"

namespace covey {

namespace {

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const GrpcChannel::Options& options) {
  return options.tls == nullptr ? grpc::InsecureChannelCredentials()
                                : options.tls->ForSchedulersOf(options.job);
}

}  // namespace

class GrpcChannel::Implementation : public ControlCalls<ViewWatch> {
 public:
  using ControlCalls::ControlCalls;
};

GrpcChannel::GrpcChannel(const Options& options, Sink sink)
    : implementation_(std::make_unique<Implementation>(options.scheduler, CredentialsOf(options),
                                                       options.deadline, std::move(sink))) {}

GrpcChannel::~GrpcChannel() = default;

void GrpcChannel::Send(Message message) { implementation_->Send(std::move(message)); }

}  // namespace covey
