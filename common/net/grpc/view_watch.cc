// SPDX-License-Identifier: Apache-2.0
#include "common/net/grpc/view_watch.h"

#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/cluster/view_change.h"
#include "common/net/grpc/scheduler_reply.h"
#include "common/net/scheduler_failover.h"

namespace covey {
namespace {

// The epoch of the view to which it leads.
uint64_t EpochOf(const proto::WatchViewReply& news) {
  return news.has_change() ? news.change().changed().epoch() : news.view().epoch();
}

// What leads to the same view as `earlier` and then `later`; `later` alone when it does not follow.
proto::WatchViewReply Merged(proto::WatchViewReply earlier, proto::WatchViewReply later) {
  if (!later.has_change()) return later;
  proto::WatchViewReply merged;
  if (earlier.has_change()) {
    auto change = MergeViewChanges(std::move(*earlier.mutable_change()), later.change());
    if (!change.ok()) return later;
    *merged.mutable_change() = *std::move(change);
  } else {
    auto view = ApplyViewChange(std::move(*earlier.mutable_view()), later.change());
    if (!view.ok()) return later;
    *merged.mutable_view() = *std::move(view);
  }
  return merged;
}

}  // namespace

// One open stream; owns itself until gRPC is done with it.
class ViewWatch::Stream : public grpc::ClientReadReactor<proto::WatchViewReply> {
 public:
  Stream(ViewWatch& watch, size_t at, const Message& request)
      : watch_(watch), at_(at), request_(request.envelope.watch_view_request()) {
    *request_.mutable_header() = request.envelope.header();
  }

  grpc::ClientContext* context() { return &context_; }
  const proto::WatchViewRequest& request() const { return request_; }
  // The scheduler it comes from.
  size_t at() const { return at_; }

  void Start() {
    watch_.stubs_.stub(at_).WatchView(&context_, &request_, this);
    StartRead(&reply_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    watch_.Arrived(*this, std::move(reply_));
    reply_.Clear();
    StartRead(&reply_);
  }

  void OnDone(const grpc::Status& status) override {
    ViewWatch& watch = watch_;
    watch.Ended(*this, OutcomeOf(status, context_, watch.stubs_.addresses()));
    if (ShouldTryAnother(status, context_)) watch.stubs_.MoveOn(at_);
    watch.calls_.Release(&context_);
    std::unique_ptr<Stream>(this).reset();
    watch.calls_.End();
  }

 private:
  ViewWatch& watch_;
  const size_t at_;
  grpc::ClientContext context_;
  proto::WatchViewRequest request_;
  proto::WatchViewReply reply_;
};

ViewWatch::ViewWatch(SchedulerStubs& stubs, CallsInFlight& calls,
                     std::function<void(Message)> deliver)
    : stubs_(stubs), calls_(calls), deliver_(std::move(deliver)) {}

void ViewWatch::Send(Message request) {
  std::optional<Message> answer;
  Stream* opened = nullptr;
  {
    MutexLock lock(mutex_);
    // Another identity: the node has registered again.
    const bool usable = stream_ != nullptr &&
                        stream_->request().header().node() == request.envelope.header().node() &&
                        Follows(request.envelope.watch_view_request());
    waiting_ = std::move(request);
    if (usable) {
      answer = Answer();
    } else {
      if (stream_ != nullptr) stream_->context()->TryCancel();
      unread_.reset();
      position_ = waiting_->envelope.watch_view_request().known_epoch();
      auto stream = std::make_unique<Stream>(*this, stubs_.current(), *waiting_);
      if (!calls_.Begin(stream->context())) return;
      stream_ = opened = stream.release();
    }
  }
  // gRPC keeps the stream alive until it is done, which is not before it has started.
  if (opened != nullptr) opened->Start();
  if (answer.has_value()) deliver_(*std::move(answer));
}

void ViewWatch::Follow() {
  std::optional<Message> reply;
  size_t from = 0;
  {
    MutexLock lock(mutex_);
    if (stream_ == nullptr || stream_->at() == stubs_.current()) return;
    from = stream_->at();
    stream_->context()->TryCancel();
    reply = DropStream();
  }
  if (!reply.has_value()) return;
  SetStatus(absl::UnavailableError(absl::StrCat("scheduler at ", stubs_.address(from),
                                                " does not answer or does not lead; the next of ",
                                                stubs_.addresses(), " is asked")),
            *reply);
  deliver_(*std::move(reply));
}

void ViewWatch::Arrived(const Stream& stream, proto::WatchViewReply news) {
  std::optional<Message> answer;
  {
    MutexLock lock(mutex_);
    if (stream_ != &stream) return;
    unread_ = unread_.has_value() ? Merged(*std::exchange(unread_, std::nullopt), std::move(news))
                                  : std::move(news);
    answer = Answer();
  }
  if (answer.has_value()) deliver_(*std::move(answer));
}

void ViewWatch::Ended(const Stream& stream, const absl::Status& outcome) {
  std::optional<Message> reply;
  {
    MutexLock lock(mutex_);
    if (stream_ != &stream) return;
    reply = DropStream();
  }
  if (!reply.has_value()) return;
  SetStatus(outcome.ok() ? absl::UnavailableError("the scheduler ended the watch") : outcome,
            *reply);
  deliver_(*std::move(reply));
}

bool ViewWatch::Follows(const proto::WatchViewRequest& request) const {
  if (stream_->request().takes_changes() != request.takes_changes()) return false;
  // Whole views follow any.
  if (!request.takes_changes() || (unread_.has_value() && unread_->has_view())) return true;
  return request.known_epoch() == (unread_.has_value() ? unread_->change().since() : position_);
}

std::optional<Message> ViewWatch::Answer() {
  if (!waiting_.has_value() || !unread_.has_value()) return std::nullopt;
  if (EpochOf(*unread_) <= waiting_->envelope.watch_view_request().known_epoch()) {
    return std::nullopt;
  }
  position_ = EpochOf(*unread_);
  Message answer = MakeSchedulerReply(*waiting_);
  *answer.envelope.mutable_watch_view_reply() = *std::exchange(unread_, std::nullopt);
  waiting_.reset();
  return answer;
}

std::optional<Message> ViewWatch::DropStream() {
  stream_ = nullptr;
  unread_.reset();
  if (!waiting_.has_value()) return std::nullopt;
  Message reply = MakeSchedulerReply(*waiting_);
  reply.envelope.mutable_watch_view_reply();
  waiting_.reset();
  return reply;
}

}  // namespace covey
