// SPDX-License-Identifier: Apache-2.0
#include "common/net/grpc/unary_calls.h"

#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "common/base/log.h"
#include "common/net/control_methods.h"
#include "common/net/grpc/scheduler_reply.h"
#include "common/net/scheduler_failover.h"

namespace covey {
namespace {

using proto::Envelope;

// Added to a barrier's own deadline, so that the scheduler's reply, which names the missing nodes,
// arrives before this deadline.
constexpr absl::Duration kBarrierSlack = absl::Seconds(2);

absl::Duration DeadlineOf(const Envelope& envelope, absl::Duration otherwise) {
  if (!envelope.has_barrier_request()) return otherwise;
  return absl::Milliseconds(envelope.barrier_request().deadline_ms()) + kBarrierSlack;
}

gpr_timespec After(absl::Duration duration) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_micros(absl::ToInt64Microseconds(duration), GPR_TIMESPAN));
}

}  // namespace

// One request, its attempts and its reply. The callback of the attempt in flight owns it.
template <typename Request, typename Reply>
class UnaryCalls::Call {
 public:
  using Method = void (SchedulerStubs::AsyncStub::*)(grpc::ClientContext*, const Request*, Reply*,
                                                     std::function<void(grpc::Status)>);

  Call(UnaryCalls& owner, Method method, Request* (Envelope::*request_of)(),
       Reply* (Envelope::*reply_of)(), Message request)
      : owner_(owner),
        method_(method),
        request_(std::move(request)),
        reply_(MakeSchedulerReply(request_)),
        request_body_((request_.envelope.*request_of)()),
        reply_body_((reply_.envelope.*reply_of)()),
        deadline_(After(DeadlineOf(request_.envelope, owner.deadline_))) {
    *request_body_->mutable_header() = request_.envelope.header();
  }

  static void Start(UnaryCalls& owner, Method method, Request* (Envelope::*request_of)(),
                    Reply* (Envelope::*reply_of)(), Message request) {
    Try(std::make_unique<Call>(owner, method, request_of, reply_of, std::move(request)));
  }

 private:
  // One attempt, at the current scheduler.
  static void Try(std::unique_ptr<Call> call) {
    call->context_ = std::make_unique<grpc::ClientContext>();
    call->context_->set_deadline(call->deadline_);
    ++call->attempts_;
    if (!call->owner_.calls_.Begin(call->context_.get())) return;
    call->at_ = call->owner_.stubs_.current();
    // std::function can hold only copyable objects.
    Call* const held = call.release();
    (held->owner_.stubs_.stub(held->at_).*held->method_)(
        held->context_.get(), held->request_body_, held->reply_body_,
        [held](const grpc::Status& status) { Done(std::unique_ptr<Call>(held), status); });
  }

  // The attempt is over; may start the next one.
  static void Done(std::unique_ptr<Call> call, const grpc::Status& status) {
    UnaryCalls& owner = call->owner_;
    const bool elsewhere = ShouldTryAnother(status, *call->context_);
    const absl::Status outcome = OutcomeOf(status, *call->context_, owner.stubs_.addresses());
    owner.calls_.Release(call->context_.get());
    call->context_.reset();
    if (elsewhere) owner.stubs_.MoveOn(call->at_);
    if (elsewhere && outcome.code() == absl::StatusCode::kUnavailable &&
        call->attempts_ < owner.stubs_.size()) {
      Try(std::move(call));
    } else {
      owner.Forget(call->request_);
      SetStatus(outcome, call->reply_);
      owner.deliver_(std::move(call->reply_));
    }
    call.reset();
    owner.calls_.End();
  }

  UnaryCalls& owner_;
  const Method method_;
  Message request_;
  Message reply_;
  Request* const request_body_;  // of request_
  Reply* const reply_body_;      // of reply_
  const gpr_timespec deadline_;
  size_t attempts_ = 0;
  size_t at_ = 0;
  std::unique_ptr<grpc::ClientContext> context_;
};

UnaryCalls::UnaryCalls(SchedulerStubs& stubs, CallsInFlight& calls, absl::Duration deadline,
                       std::function<void(Message)> deliver)
    : stubs_(stubs), calls_(calls), deadline_(deadline), deliver_(std::move(deliver)) {}

void UnaryCalls::Send(Message request) {
  {
    MutexLock lock(mutex_);
    if (!in_flight_.insert(KeyOf(request)).second) return;
  }
  switch (request.envelope.body_case()) {
#define COVEY_CALL(Rpc, Stem, stem, access)                                          \
  case Envelope::k##Stem##Request:                                                   \
    return Call<proto::Stem##Request, proto::Stem##Reply>::Start(                    \
        *this, &SchedulerStubs::AsyncStub::Rpc, &Envelope::mutable_##stem##_request, \
        &Envelope::mutable_##stem##_reply, std::move(request));
    COVEY_UNARY_CONTROL_METHODS(COVEY_CALL)
#undef COVEY_CALL
    default:
      Forget(request);
      LogError("not_a_control_request", {{"body", BodyName(request.envelope)}});
  }
}

void UnaryCalls::Forget(const Message& request) {
  MutexLock lock(mutex_);
  in_flight_.erase(KeyOf(request));
}

}  // namespace covey
