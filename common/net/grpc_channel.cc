// SPDX-License-Identifier: Apache-2.0
#include "common/net/grpc_channel.h"

#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/cluster/limits.h"
#include "common/net/control_methods.h"
#include "common/net/scheduler_failover.h"
#include "proto/scheduler_service.grpc.pb.h"

namespace covey {
namespace {

using AsyncStub = proto::Scheduler::StubInterface::async_interface;

// Added to a barrier's own deadline, so that the scheduler's reply, which names the missing nodes,
// arrives before this deadline.
constexpr absl::Duration kBarrierSlack = absl::Seconds(2);
// A scheduler that comes back is reached within a second.
constexpr int kReconnectFirstMilliseconds = 50;
constexpr int kReconnectLongestMilliseconds = 300;
constexpr int kConnectMilliseconds = 1000;
// While calls are open, a frozen or unreachable peer is noticed after the sum of these.
constexpr int kPingEveryMilliseconds = 1000;
constexpr int kPingTimeoutMilliseconds = 1500;

std::unique_ptr<proto::Scheduler::Stub> MakeStub(const std::string& scheduler) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kControlEnvelopeBytesMax);
  arguments.SetMaxSendMessageSize(kControlEnvelopeBytesMax);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectFirstMilliseconds);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMilliseconds);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectLongestMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingEveryMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMilliseconds);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A scheduler is never behind a web proxy, and a new channel starts without the back-off of an
  // older one.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return proto::Scheduler::NewStub(
      grpc::CreateCustomChannel(scheduler, grpc::InsecureChannelCredentials(), arguments));
}

struct Scheduler {
  std::string address;
  std::unique_ptr<proto::Scheduler::Stub> stub;
};

std::vector<Scheduler> MakeStubs(const std::string& addresses) {
  std::vector<Scheduler> schedulers;
  for (const std::string& address : SplitSchedulers(addresses)) {
    schedulers.push_back({.address = address, .stub = MakeStub(address)});
  }
  return schedulers;
}

// The reply's frame: as if the scheduler had sent it through a transport.
Message ReplyTo(const Message& request) {
  Message reply = MakeReply(request);
  reply.envelope.mutable_header()->set_job(request.envelope.header().job());
  reply.envelope.mutable_header()->set_node(request.envelope.to_node());
  return reply;
}

}  // namespace

// gRPC's channel must not be destroyed on one of gRPC's threads: it would wait for that thread. A
// call's context holds the channel, too. So each callback destroys its context before it calls
// Leave, and Close returns after the last Leave, before anything else is destroyed. Thread-safe.
class GrpcChannel::Implementation {
 public:
  Implementation(const Options& options, Sink sink)
      : options_(options), sink_(std::move(sink)), schedulers_(MakeStubs(options.scheduler)) {}

  void Send(Message message);
  void Close();

 private:
  class WatchStream;

  template <typename Request, typename Reply>
  struct UnaryCall;

  template <typename Request, typename Reply>
  void Call(void (AsyncStub::*method)(grpc::ClientContext*, const Request*, Reply*,
                                      std::function<void(grpc::Status)>),
            Request* (proto::Envelope::*request_of)(), Reply* (proto::Envelope::*reply_of)(),
            Message request);
  // One attempt, at the current scheduler.
  template <typename Request, typename Reply>
  void Try(std::unique_ptr<UnaryCall<Request, Reply>> call);
  void Watch(Message request);
  // The scheduler with number `from` does not reply, or does not lead: the next one becomes
  // current.
  void MoveOn(size_t from);
  // The reply to the waiting request, when there is a newer view for it.
  std::optional<Message> AnswerWatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Outcome(const grpc::Status& status, const grpc::ClientContext& context) const;
  absl::Duration DeadlineOf(const proto::Envelope& envelope) const;

  // A call is in progress from Enter, which refuses after Close, until Leave. Close cancels it
  // unless it was forgotten.
  bool Enter(grpc::ClientContext* context) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(grpc::ClientContext* context);
  void Leave();
  void Deliver(Message message);

  const Options options_;
  const Sink sink_;
  const std::vector<Scheduler> schedulers_;

  Mutex mutex_;
  // The current scheduler: an index of schedulers_.
  size_t current_ ABSL_GUARDED_BY(mutex_) = 0;
  CondVar left_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  size_t under_way_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_set<grpc::ClientContext*> contexts_ ABSL_GUARDED_BY(mutex_);
  // Null when no stream is open.
  WatchStream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::optional<Message> waiting_ ABSL_GUARDED_BY(mutex_);
  // Newest view of the stream that no reply has carried yet.
  std::optional<proto::WatchViewReply> unread_ ABSL_GUARDED_BY(mutex_);
};

// One open stream; owns itself until gRPC is done with it.
class GrpcChannel::Implementation::WatchStream
    : public grpc::ClientReadReactor<proto::WatchViewReply> {
 public:
  WatchStream(Implementation& channel, size_t at, const Message& request)
      : channel_(channel), at_(at), request_(request.envelope.watch_view_request()) {
    *request_.mutable_header() = request.envelope.header();
  }

  grpc::ClientContext* context() { return &context_; }
  const proto::Header& header() const { return request_.header(); }

  void Start() {
    channel_.schedulers_[at_].stub->async()->WatchView(&context_, &request_, this);
    StartRead(&reply_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    std::optional<Message> answer;
    {
      MutexLock lock(channel_.mutex_);
      if (channel_.stream_ == this) {
        channel_.unread_ = std::move(reply_);
        answer = channel_.AnswerWatch();
      }
    }
    if (answer.has_value()) channel_.Deliver(*std::move(answer));
    reply_.Clear();
    StartRead(&reply_);
  }

  void OnDone(const grpc::Status& status) override {
    std::optional<Message> answer;
    {
      MutexLock lock(channel_.mutex_);
      if (channel_.stream_ == this) {
        channel_.stream_ = nullptr;
        channel_.unread_.reset();
        if (channel_.waiting_.has_value()) {
          answer = ReplyTo(*channel_.waiting_);
          channel_.waiting_.reset();
        }
      }
    }
    if (answer.has_value()) {
      answer->envelope.mutable_watch_view_reply();
      const absl::Status outcome = channel_.Outcome(status, context_);
      SetStatus(outcome.ok() ? absl::UnavailableError("the scheduler ended the watch") : outcome,
                *answer);
      channel_.Deliver(*std::move(answer));
    }
    if (ShouldTryAnother(status, context_)) channel_.MoveOn(at_);
    Implementation& channel = channel_;
    channel.Forget(&context_);
    std::unique_ptr<WatchStream>(this).reset();
    channel.Leave();
  }

 private:
  Implementation& channel_;
  const size_t at_;
  grpc::ClientContext context_;
  proto::WatchViewRequest request_;
  proto::WatchViewReply reply_;
};

bool GrpcChannel::Implementation::Enter(grpc::ClientContext* context) {
  if (closed_) return false;
  ++under_way_;
  contexts_.insert(context);
  return true;
}

void GrpcChannel::Implementation::Forget(grpc::ClientContext* context) {
  MutexLock lock(mutex_);
  contexts_.erase(context);
}

void GrpcChannel::Implementation::Leave() {
  MutexLock lock(mutex_);
  --under_way_;
  left_.NotifyAll();
}

void GrpcChannel::Implementation::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  for (grpc::ClientContext* context : contexts_) context->TryCancel();
  while (under_way_ > 0) left_.WaitFor(mutex_, absl::InfiniteDuration());
}

void GrpcChannel::Implementation::Deliver(Message message) {
  {
    MutexLock lock(mutex_);
    if (closed_) return;
  }
  sink_(std::move(message));
}

absl::Status GrpcChannel::Implementation::Outcome(const grpc::Status& status,
                                                  const grpc::ClientContext& context) const {
  if (status.ok()) return absl::OkStatus();
  const absl::StatusCode code = static_cast<absl::StatusCode>(status.error_code());
  if (IsFromScheduler(status, context)) return absl::Status(code, status.error_message());
  return absl::Status(code, absl::StrCat("scheduler at ", options_.scheduler,
                                         " does not answer: ", status.error_message(),
                                         "; check that it runs and that the address is right"));
}

absl::Duration GrpcChannel::Implementation::DeadlineOf(const proto::Envelope& envelope) const {
  if (!envelope.has_barrier_request()) return options_.deadline;
  return absl::Milliseconds(envelope.barrier_request().deadline_ms()) + kBarrierSlack;
}

template <typename Request, typename Reply>
struct GrpcChannel::Implementation::UnaryCall {
  void (AsyncStub::*method)(grpc::ClientContext*, const Request*, Reply*,
                            std::function<void(grpc::Status)>);
  Message request;
  Message reply;
  Request* body = nullptr;  // of the request
  Reply* answer = nullptr;  // of the reply
  gpr_timespec deadline;
  size_t attempts = 0;
  size_t at = 0;
  std::unique_ptr<grpc::ClientContext> context;
};

template <typename Request, typename Reply>
void GrpcChannel::Implementation::Call(void (AsyncStub::*method)(grpc::ClientContext*,
                                                                 const Request*, Reply*,
                                                                 std::function<void(grpc::Status)>),
                                       Request* (proto::Envelope::*request_of)(),
                                       Reply* (proto::Envelope::*reply_of)(), Message request) {
  auto call = std::make_unique<UnaryCall<Request, Reply>>();
  call->method = method;
  call->request = std::move(request);
  call->reply = ReplyTo(call->request);
  call->deadline = gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC),
      gpr_time_from_micros(absl::ToInt64Microseconds(DeadlineOf(call->request.envelope)),
                           GPR_TIMESPAN));
  call->body = (call->request.envelope.*request_of)();
  *call->body->mutable_header() = call->request.envelope.header();
  call->answer = (call->reply.envelope.*reply_of)();
  Try(std::move(call));
}

template <typename Request, typename Reply>
void GrpcChannel::Implementation::Try(std::unique_ptr<UnaryCall<Request, Reply>> call) {
  call->context = std::make_unique<grpc::ClientContext>();
  call->context->set_deadline(call->deadline);
  ++call->attempts;
  {
    MutexLock lock(mutex_);
    if (!Enter(call->context.get())) return;
    call->at = current_;
  }
  // The callback owns the call; std::function can hold only copyable objects.
  UnaryCall<Request, Reply>* const held = call.release();
  (schedulers_[held->at].stub->async()->*held->method)(
      held->context.get(), held->body, held->answer, [this, held](const grpc::Status& status) {
        std::unique_ptr<UnaryCall<Request, Reply>> call(held);
        const bool elsewhere = ShouldTryAnother(status, *call->context);
        const absl::Status outcome = Outcome(status, *call->context);
        Forget(call->context.get());
        call->context.reset();
        if (elsewhere) MoveOn(call->at);
        if (elsewhere && outcome.code() == absl::StatusCode::kUnavailable &&
            call->attempts < schedulers_.size()) {
          Try(std::move(call));
        } else {
          SetStatus(outcome, call->reply);
          Deliver(std::move(call->reply));
        }
        call.reset();
        Leave();
      });
}

void GrpcChannel::Implementation::MoveOn(size_t from) {
  std::optional<Message> answer;
  {
    MutexLock lock(mutex_);
    if (schedulers_.size() == 1 || current_ != from) return;
    current_ = (from + 1) % schedulers_.size();
    // A watch at the former scheduler might wait forever.
    if (stream_ != nullptr) stream_->context()->TryCancel();
    stream_ = nullptr;
    unread_.reset();
    if (waiting_.has_value()) {
      answer = ReplyTo(*waiting_);
      waiting_.reset();
    }
  }
  if (!answer.has_value()) return;
  answer->envelope.mutable_watch_view_reply();
  SetStatus(absl::UnavailableError(absl::StrCat("scheduler at ", schedulers_[from].address,
                                                " does not answer or does not lead; the next of ",
                                                options_.scheduler, " is asked")),
            *answer);
  Deliver(*std::move(answer));
}

std::optional<Message> GrpcChannel::Implementation::AnswerWatch() {
  if (!waiting_.has_value() || !unread_.has_value()) return std::nullopt;
  if (unread_->view().epoch() <= waiting_->envelope.watch_view_request().known_epoch()) {
    return std::nullopt;
  }
  Message answer = ReplyTo(*waiting_);
  *answer.envelope.mutable_watch_view_reply() = *std::exchange(unread_, std::nullopt);
  waiting_.reset();
  return answer;
}

void GrpcChannel::Implementation::Watch(Message request) {
  std::optional<Message> answer;
  WatchStream* opened = nullptr;
  {
    MutexLock lock(mutex_);
    // A repeated request means that the stream may be dead unnoticed; another identity, that the
    // node has registered again.
    const bool usable = stream_ != nullptr && !waiting_.has_value() &&
                        stream_->header().node() == request.envelope.header().node();
    waiting_ = std::move(request);
    if (usable) {
      answer = AnswerWatch();
    } else {
      if (stream_ != nullptr) stream_->context()->TryCancel();
      unread_.reset();
      auto stream = std::make_unique<WatchStream>(*this, current_, *waiting_);
      if (!Enter(stream->context())) return;
      stream_ = opened = stream.release();
    }
  }
  // gRPC keeps the stream alive until it is done, which is not before it has started.
  if (opened != nullptr) opened->Start();
  if (answer.has_value()) Deliver(*std::move(answer));
}

void GrpcChannel::Implementation::Send(Message message) {
  using proto::Envelope;
  switch (message.envelope.body_case()) {
#define COVEY_CALL(Rpc, Stem, stem, access)                           \
  case Envelope::k##Stem##Request:                                    \
    return Call(&AsyncStub::Rpc, &Envelope::mutable_##stem##_request, \
                &Envelope::mutable_##stem##_reply, std::move(message));
    COVEY_UNARY_CONTROL_METHODS(COVEY_CALL)
#undef COVEY_CALL
    case Envelope::kWatchViewRequest:
      return Watch(std::move(message));
    default:
      LogError("not_a_control_request", {{"body", BodyName(message.envelope)}});
  }
}

GrpcChannel::GrpcChannel(const Options& options, Sink sink)
    : implementation_(std::make_unique<Implementation>(options, std::move(sink))) {}

GrpcChannel::~GrpcChannel() { implementation_->Close(); }

void GrpcChannel::Send(Message message) { implementation_->Send(std::move(message)); }

}  // namespace covey
