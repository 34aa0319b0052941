// SPDX-License-Identifier: Apache-2.0
#include "common/net/grpc_channel.h"

#include <grpcpp/security/credentials.h>

#include <utility>

#include "common/net/grpc/calls_in_flight.h"
#include "common/net/grpc/scheduler_stubs.h"
#include "common/net/grpc/unary_calls.h"
#include "common/net/grpc/view_watch.h"
#include "common/security/tls_credentials.h"

namespace covey {

namespace {

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const GrpcChannel::Options& options) {
  return options.tls == nullptr ? grpc::InsecureChannelCredentials()
                                : options.tls->ForSchedulersOf(options.job);
}

}  // namespace

// Thread-safe.
class GrpcChannel::Implementation {
 public:
  Implementation(const Options& options, Sink sink)
      : sink_(std::move(sink)),
        stubs_(options.scheduler, CredentialsOf(options), [this] { watch_.Follow(); }),
        unary_calls_(stubs_, calls_, options.deadline,
                     [this](Message reply) { Deliver(std::move(reply)); }),
        watch_(stubs_, calls_, [this](Message reply) { Deliver(std::move(reply)); }) {}
  ~Implementation() { calls_.Close(); }

  void Send(Message message) {
    if (message.envelope.has_watch_view_request()) {
      watch_.Send(std::move(message));
    } else {
      unary_calls_.Send(std::move(message));
    }
  }

 private:
  void Deliver(Message reply) {
    if (!calls_.closed()) sink_(std::move(reply));
  }

  const Sink sink_;
  SchedulerStubs stubs_;
  CallsInFlight calls_;
  UnaryCalls unary_calls_;
  ViewWatch watch_;
};

GrpcChannel::GrpcChannel(const Options& options, Sink sink)
    : implementation_(std::make_unique<Implementation>(options, std::move(sink))) {}

GrpcChannel::~GrpcChannel() = default;

void GrpcChannel::Send(Message message) { implementation_->Send(std::move(message)); }

}  // namespace covey
