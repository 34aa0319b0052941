// SPDX-License-Identifier: Apache-2.0
#include "scheduler/rpc/grpc_service.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/buffer.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/net/control_methods.h"
#include "common/net/grpc_log.h"
#include "common/net/host_port.h"
#include "common/net/scheduler_failover.h"
#include "common/security/rights.h"
#include "common/security/tls_credentials.h"
#include "common/security/wall_clock.h"
#include "proto/scheduler_service.grpc.pb.h"
#include "scheduler/rpc/call_table.h"
#include "scheduler/rpc/callers.h"

namespace covey::scheduler {
namespace {

// How long calls in flight may take after Shutdown before they are canceled.
constexpr absl::Duration kDrain = absl::Milliseconds(100);
// Nodes ping every second (common/net/grpc/scheduler_stubs.cc).
constexpr int kPingIntervalMinMilliseconds = 400;
// A node has fewer than ten calls open at a time; each costs gRPC about 16 KiB. A peer that ignores
// this limit loses its connection.
constexpr int kCallsPerConnectionMax = 32;
// The largest legitimate request, a report about thousands of replicas, is far below.
constexpr int kRequestBytesMax = 1 << 20;
// Memory that gRPC may use for connections and calls; beyond it new connections are closed and the
// costliest calls are ended.
constexpr size_t kMemoryMax = 128 << 20;
// A connection that has not completed its handshake by then is closed: it has proven nothing, and
// takes room.
constexpr int kHandshakeMilliseconds = 10'000;
// With certificates: new calls use a new connection after this time, and so the certificate that
// their caller has by then. Open calls stay on the old one.
constexpr int kConnectionAgeMilliseconds = 600'000;

grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

// Whose certificates callers show, where they must show any.
class CallerCheck {
 public:
  // `tls`: of this scheduler; null = callers show none.
  explicit CallerCheck(const TlsCredentials* tls) {
    if (tls != nullptr) callers_.emplace(tls->folder());
  }

  // Puts the caller into `request`. UNAUTHENTICATED: as Callers::Find.
  absl::Status Fill(const grpc::ServerContextBase& context, Message& request) {
    if (!callers_.has_value()) return absl::OkStatus();
    COVEY_ASSIGN_OR_RETURN(request.caller, Find(context));
    return absl::OkStatus();
  }
  // Precondition: callers show certificates.
  absl::StatusOr<std::shared_ptr<const Identity>> Find(const grpc::ServerContextBase& context) {
    const auto shown = context.auth_context();
    if (shown == nullptr) return absl::UnauthenticatedError("the connection has no certificate");
    return callers_->Find(*shown, WallClockNow());
  }
  // As Callers.
  uint64_t refused() const { return callers_.has_value() ? callers_->refused() : 0; }

 private:
  std::optional<Callers> callers_;
};

template <typename Reply>
class UnaryCall : public grpc::ServerUnaryReactor, public Call {
 public:
  using Body = const Reply& (proto::Envelope::*)() const;

  UnaryCall(CallTable& calls, grpc::CallbackServerContext& context, Body body, Reply& reply)
      : calls_(calls), context_(context), body_(body), reply_(reply) {}

  // `status`: not OK refuses the call.
  void Begin(std::shared_ptr<UnaryCall> self, absl::Status status, const std::string& peer,
             Message request) {
    self_ = self;
    if (status.ok()) status = calls_.Begin(std::move(self), peer, std::move(request));
    if (!status.ok()) Finish(ToGrpc(status));
  }
  void OnCancel() override {
    calls_.Continue(self_, [this](absl::Time, Outbox&) { return Cancel(); });
  }
  void OnDone() override { const auto last = std::move(self_); }

  bool SendReply(const Message& message) override {
    const absl::Status status = StatusOf(message);
    if (status.ok()) reply_ = (message.envelope.*body_)();
    if (!status.ok() && !calls_.leads()) context_.AddTrailingMetadata(kStandbyMetadata, "1");
    Finish(ToGrpc(status));
    return true;
  }
  bool Cancel() override {
    Finish(grpc::Status::CANCELLED);
    return true;
  }

 private:
  CallTable& calls_;
  grpc::CallbackServerContext& context_;
  const Body body_;
  Reply& reply_;
  std::shared_ptr<Call> self_;  // until gRPC is done with it
};

// The bytes that travel (UnpackWatchReply). A frame is shared with the other calls that send it.
grpc::ByteBuffer BytesOf(const Message& reply) {
  if (reply.frames.empty()) {
    const grpc::Slice bytes(reply.envelope.watch_view_reply().SerializeAsString());
    return {&bytes, 1};
  }
  auto frame = std::make_unique<Buffer>(reply.frames.front());
  // gRPC does not write to it.
  auto* const data = const_cast<uint8_t*>(frame->data());
  const size_t size = frame->size();
  const grpc::Slice bytes(
      data, size, [](void* kept) { std::unique_ptr<Buffer>(static_cast<Buffer*>(kept)).reset(); },
      frame.release());
  return {&bytes, 1};
}

// A stream of replies, whose bytes are not made again for each watcher.
class WatchCall : public grpc::ServerWriteReactor<grpc::ByteBuffer>, public Call {
 public:
  WatchCall(CallTable& calls, CallerCheck& check, grpc::CallbackServerContext& context)
      : calls_(calls), check_(check), context_(context) {}

  // `status`: not OK refuses the call.
  void Begin(std::shared_ptr<WatchCall> self, absl::Status status, const std::string& peer,
             Message request) {
    self_ = self;
    request_ = request;
    if (status.ok()) status = calls_.Begin(std::move(self), peer, std::move(request));
    if (!status.ok()) Finish(ToGrpc(status));
  }
  // A node never stops watching on purpose, so one whose watch ends may be gone.
  void OnCancel() override {
    calls_.Continue(self_, [this](absl::Time now, Outbox& outbox) {
      calls_.ReportLost(now, request_, outbox);
      return Cancel();
    });
  }
  void OnWriteDone(bool ok) override {
    calls_.Continue(self_, [this, ok](absl::Time now, Outbox& outbox) {
      writing_ = false;
      if (cancelled_ || !ok) return Cancel();
      calls_.Deliver(now, *this, request_, outbox);
      return false;
    });
  }
  void OnDone() override { const auto last = std::move(self_); }

  bool SendReply(const Message& message) override {
    absl::Status status = StatusOf(message);
    // The certificate may have expired while the caller watched.
    if (status.ok()) status = check_.Fill(context_, request_);
    if (!status.ok() && !writing_) {
      if (!calls_.leads()) context_.AddTrailingMetadata(kStandbyMetadata, "1");
      Finish(ToGrpc(status));
      return true;
    }
    const uint64_t epoch = message.envelope.watch_view_reply().view().epoch();
    proto::WatchViewRequest& request = *request_.envelope.mutable_watch_view_request();
    if (epoch > request.known_epoch() && !writing_) {
      request.set_known_epoch(epoch);
      reply_ = BytesOf(message);
      writing_ = true;
      StartWrite(&reply_);
    } else if (!writing_) {
      // The poll has ended without news.
      calls_.DeliverAgain(*this, request_);
    }
    return false;
  }
  bool Cancel() override {
    cancelled_ = true;
    if (writing_) return false;  // OnWriteDone follows
    Finish(grpc::Status::CANCELLED);
    return true;
  }

 private:
  CallTable& calls_;
  CallerCheck& check_;
  grpc::CallbackServerContext& context_;
  Message request_;
  grpc::ByteBuffer reply_;
  bool writing_ = false;
  bool cancelled_ = false;
  std::shared_ptr<Call> self_;  // until gRPC is done with it
};

template <typename Request>
Message ToMessage(const Request& request, Request* (proto::Envelope::*body)()) {
  Message message;
  message.set_to({kSchedulerNode, 0});
  *message.envelope.mutable_header() = request.header();
  Request& copy = *(message.envelope.*body)();
  copy = request;
  copy.clear_header();
  return message;
}

// Watches calls that gRPC itself handles. It refuses with UNIMPLEMENTED a request that it cannot
// parse, which is counted, and one that never came because the caller had gone. Of its own
// services, health and reflection, it serves every caller: those without a right to them are cut
// off.
class CallWatcher : public grpc::experimental::Interceptor {
 public:
  // `scheduler`: its identity; null = callers have none. `method`: the service and the method,
  // each after a slash.
  CallWatcher(CallTable& calls, CallerCheck& check, grpc::ServerContextBase& context,
              const Identity* scheduler, absl::string_view method)
      : calls_(calls), check_(check), context_(context), scheduler_(scheduler), method_(method) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    using grpc::experimental::InterceptionHookPoints;
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA) &&
        IsRefused()) {
      context_.TryCancel();
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      is_unparsed_ = methods->GetSendStatus().error_code() == grpc::StatusCode::UNIMPLEMENTED;
    }
    // Only now gRPC knows whether the caller had gone.
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_CLOSE) &&
        is_unparsed_ && !context_.IsCancelled()) {
      calls_.CountMalformed();
    }
    methods->Proceed();
  }

 private:
  // Our own service answers for itself.
  bool IsRefused() const {
    if (scheduler_ == nullptr) return false;
    const std::vector<absl::string_view> name = absl::StrSplit(method_, '/');
    if (name.size() != 3) return true;
    if (name[1] == proto::Scheduler::service_full_name()) return false;
    const auto caller = check_.Find(context_);
    return !caller.ok() || !CheckRight(**caller, {.service = name[1],
                                                  .method = name[2],
                                                  .trust_domain = scheduler_->trust_domain,
                                                  .job = scheduler_->job.value_or("")})
                                .ok();
  }

  CallTable& calls_;
  CallerCheck& check_;
  grpc::ServerContextBase& context_;
  const Identity* const scheduler_;
  const std::string method_;
  bool is_unparsed_ = false;
};

class CallWatcherFactory : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  // `tls`: of this scheduler; null = none.
  CallWatcherFactory(CallTable& calls, CallerCheck& check, const TlsCredentials* tls)
      : calls_(calls), check_(check) {
    if (tls != nullptr) scheduler_ = tls->identity();
  }
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* call) override {
    return std::make_unique<CallWatcher>(calls_, check_, *call->server_context(),
                                         scheduler_.has_value() ? &*scheduler_ : nullptr,
                                         call->method())
        .release();  // gRPC owns it
  }

 private:
  CallTable& calls_;
  CallerCheck& check_;
  std::optional<Identity> scheduler_;
};

using ServedMethods =
    proto::Scheduler::WithRawCallbackMethod_WatchView<proto::Scheduler::CallbackService>;

class Service : public GrpcService, private ServedMethods {
 public:
  Service(const Options& options, Actor& actor, EventLoop& loop)
      : always_leads_(options.leads == nullptr),
        calls_(actor, loop, options.leads),
        check_(options.tls.get()) {}
  ~Service() override { Shutdown(); }

  absl::Status Listen(const Options& options) {
    if (options.tls != nullptr) {
      COVEY_RETURN_IF_ERROR(Callers::ReadRevoked(options.tls->folder()).status());
    }
    TakeLogOfGrpc();
    grpc::EnableDefaultHealthCheckService(true);
    if (options.has_reflection) grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    int chosen = 0;
    builder.AddListeningPort(
        HostPort(options.host, options.port),
        options.tls != nullptr ? options.tls->ForServer() : grpc::InsecureServerCredentials(),
        &chosen);
    if (options.tls != nullptr) {
      builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, kConnectionAgeMilliseconds);
    }
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMilliseconds);
    // With two schedulers on one port, each would get some of the calls.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                               kPingIntervalMinMilliseconds);
    // As the nodes (common/net/grpc/scheduler_stubs.cc).
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kCallsPerConnectionMax);
    builder.SetMaxReceiveMessageSize(kRequestBytesMax);
    builder.SetResourceQuota(grpc::ResourceQuota("control plane").Resize(kMemoryMax));
    builder.SetMaxSendMessageSize(kControlEnvelopeBytesMax);
    builder.RegisterService(this);
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>>
        interceptors;
    interceptors.push_back(std::make_unique<CallWatcherFactory>(calls_, check_, options.tls.get()));
    builder.experimental().SetInterceptorCreators(std::move(interceptors));
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || chosen == 0) {
      return absl::UnavailableError(absl::StrCat("cannot listen on ",
                                                 HostPort(options.host, options.port),
                                                 ": the port is in use, or the host is not of this "
                                                 "machine; name another port, or 0 for any"));
    }
    port_ = static_cast<uint32_t>(chosen);
    if (!always_leads_) server_->GetHealthCheckService()->SetServingStatus(false);
    return absl::OkStatus();
  }

  uint32_t port() const override { return port_; }
  // No effect after Shutdown.
  void SetServing() override { server_->GetHealthCheckService()->SetServingStatus(true); }
  uint64_t malformed() const override { return calls_.malformed(); }
  uint64_t callers_refused() const override { return check_.refused(); }
  void Send(Message reply) override { calls_.SendReply(reply); }
  void Shutdown() override {
    if (server_ == nullptr || std::exchange(ended_, true)) return;
    calls_.Close();
    const gpr_timespec drain =
        gpr_time_from_millis(absl::ToInt64Milliseconds(kDrain), GPR_TIMESPAN);
    server_->Shutdown(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), drain));
    server_->Wait();
  }

 private:
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;
  using Envelope = proto::Envelope;

  template <typename Request, typename Reply>
  Reactor* Unary(Context* context, const Request& request, Request* (Envelope::*request_body)(),
                 Reply& reply, const Reply& (Envelope::*reply_body)() const) {
    auto call = std::make_shared<UnaryCall<Reply>>(calls_, *context, reply_body, reply);
    UnaryCall<Reply>& reactor = *call;
    Message message = ToMessage(request, request_body);
    const absl::Status status = check_.Fill(*context, message);
    reactor.Begin(std::move(call), status, context->peer(), std::move(message));
    return &reactor;
  }

#define COVEY_SERVE(Rpc, Stem, stem, access)                                                     \
  Reactor* Rpc(Context* context, const proto::Stem##Request* request, proto::Stem##Reply* reply) \
      override {                                                                                 \
    return Unary(context, *request, &Envelope::mutable_##stem##_request, *reply,                 \
                 &Envelope::stem##_reply);                                                       \
  }
  COVEY_UNARY_CONTROL_METHODS(COVEY_SERVE)
#undef COVEY_SERVE
  grpc::ServerWriteReactor<grpc::ByteBuffer>* WatchView(Context* context,
                                                        const grpc::ByteBuffer* bytes) override {
    auto call = std::make_shared<WatchCall>(calls_, check_, *context);
    WatchCall& reactor = *call;
    grpc::ByteBuffer received = *bytes;
    proto::WatchViewRequest request;
    const grpc::Status parsed =
        grpc::SerializationTraits<proto::WatchViewRequest>::Deserialize(&received, &request);
    Message message = ToMessage(request, &Envelope::mutable_watch_view_request);
    // As gRPC itself refuses the requests that it cannot parse; CallWatcher counts them.
    const absl::Status status = parsed.ok()
                                    ? check_.Fill(*context, message)
                                    : absl::UnimplementedError("the request cannot be parsed");
    reactor.Begin(std::move(call), status, context->peer(), std::move(message));
    return &reactor;
  }

  const bool always_leads_;
  CallTable calls_;
  CallerCheck check_;
  uint32_t port_ = 0;
  bool ended_ = false;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcService>> GrpcService::Start(const Options& options,
                                                                Actor& actor, EventLoop& loop) {
  auto service = std::make_unique<Service>(options, actor, loop);
  if (absl::Status status = service->Listen(options); !status.ok()) return status;
  return std::unique_ptr<GrpcService>(std::move(service));
}

}  // namespace covey::scheduler
