// SPDX-License-Identifier: Apache-2.0
#include "tests/process/epoch_channel.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/net/grpc/control_calls.h"
#include "common/net/grpc/scheduler_reply.h"

namespace covey {
namespace {

using WatchStub = grpc::TemplatedGenericStub<proto::WatchViewRequest, grpc::ByteBuffer>;

// Passes over fields until it is inside the one with this number. False: there is none.
bool Enter(google::protobuf::io::CodedInputStream& bytes, int field) {
  using google::protobuf::internal::WireFormatLite;
  while (const uint32_t tag = bytes.ReadTag()) {
    uint32_t size = 0;
    if (WireFormatLite::GetTagFieldNumber(tag) == field) {
      const bool is_nested =
          WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
      return !is_nested || bytes.ReadVarint32(&size);
    }
    if (!WireFormatLite::SkipField(&bytes, tag)) return false;
  }
  return false;
}

// The epoch of the view, or of the change, in a WatchViewReply, without the rest; 0 = none.
uint64_t EpochIn(grpc::ByteBuffer& reply) {
  uint64_t epoch = 0;
  for (const bool is_change : {false, true}) {
    grpc::ByteBuffer copy = reply;
    grpc::ProtoBufferReader reader(&copy);
    google::protobuf::io::CodedInputStream bytes(&reader);
    const bool is_found = is_change ? Enter(bytes, proto::WatchViewReply::kChangeFieldNumber) &&
                                          Enter(bytes, proto::ViewChange::kChangedFieldNumber)
                                    : Enter(bytes, proto::WatchViewReply::kViewFieldNumber);
    if (is_found && Enter(bytes, proto::ClusterView::kEpochFieldNumber) &&
        bytes.ReadVarint64(&epoch)) {
      break;
    }
  }
  return epoch;
}

// A watch as ViewWatch keeps it, of epochs. Thread-safe.
class EpochWatch {
 public:
  EpochWatch(SchedulerStubs& stubs, CallsInFlight& calls, GrpcChannel::Sink deliver)
      : calls_(calls), deliver_(std::move(deliver)), stub_(stubs.channel(0)) {}

  void Send(Message request) {
    std::optional<Message> answer;
    Stream* opened = nullptr;
    {
      MutexLock lock(mutex_);
      waiting_ = std::move(request);
      if (stream_ != nullptr) {
        answer = Answer();
      } else {
        auto stream = std::make_unique<Stream>(*this, *waiting_);
        if (!calls_.Begin(stream->context())) return;
        stream_ = opened = stream.release();
      }
    }
    if (opened != nullptr) opened->Start();
    if (answer.has_value()) deliver_(*std::move(answer));
  }
  // There is one scheduler.
  void Follow() {}

 private:
  // Owns itself until gRPC is done with it.
  class Stream : public grpc::ClientBidiReactor<proto::WatchViewRequest, grpc::ByteBuffer> {
   public:
    Stream(EpochWatch& watch, const Message& request)
        : watch_(watch), request_(request.envelope.watch_view_request()) {
      *request_.mutable_header() = request.envelope.header();
    }
    grpc::ClientContext* context() { return &context_; }
    void Start() {
      watch_.stub_.PrepareBidiStreamingCall(&context_, watch_.method_, {}, this);
      StartWriteLast(&request_, {});
      StartRead(&reply_);
      StartCall();
    }
    void OnReadDone(bool ok) override {
      if (!ok) return;
      watch_.Arrived(*this, EpochIn(reply_));
      reply_.Clear();
      StartRead(&reply_);
    }
    void OnDone(const grpc::Status& status) override {
      EpochWatch& watch = watch_;
      watch.Ended(*this, status);
      watch.calls_.Release(&context_);
      std::unique_ptr<Stream>(this).reset();
      watch.calls_.End();
    }

   private:
    EpochWatch& watch_;
    grpc::ClientContext context_;
    proto::WatchViewRequest request_;
    grpc::ByteBuffer reply_;
  };

  void Arrived(const Stream& stream, uint64_t epoch) {
    std::optional<Message> answer;
    {
      MutexLock lock(mutex_);
      if (stream_ != &stream) return;
      newest_ = std::max(newest_, epoch);
      answer = Answer();
    }
    if (answer.has_value()) deliver_(*std::move(answer));
  }
  void Ended(const Stream& stream, const grpc::Status& status) {
    std::optional<Message> reply;
    {
      MutexLock lock(mutex_);
      if (stream_ != &stream) return;
      stream_ = nullptr;
      if (!waiting_.has_value()) return;
      reply = MakeSchedulerReply(*std::exchange(waiting_, std::nullopt));
    }
    reply->envelope.mutable_watch_view_reply();
    SetStatus(absl::UnavailableError(absl::StrCat("the watch ended: ", status.error_message())),
              *reply);
    deliver_(*std::move(reply));
  }
  std::optional<Message> Answer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!waiting_.has_value()) return std::nullopt;
    if (newest_ <= waiting_->envelope.watch_view_request().known_epoch()) return std::nullopt;
    Message answer = MakeSchedulerReply(*std::exchange(waiting_, std::nullopt));
    answer.envelope.mutable_watch_view_reply()->mutable_view()->set_epoch(newest_);
    return answer;
  }

  CallsInFlight& calls_;
  const GrpcChannel::Sink deliver_;
  WatchStub stub_;
  const std::string method_ =
      absl::StrCat("/", proto::Scheduler::service_full_name(), "/WatchView");
  Mutex mutex_;
  Stream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::optional<Message> waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t newest_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

class EpochChannel::Implementation : public ControlCalls<EpochWatch> {
 public:
  using ControlCalls::ControlCalls;
};

EpochChannel::EpochChannel(const std::string& scheduler, GrpcChannel::Sink sink)
    : implementation_(
          std::make_unique<Implementation>(scheduler, grpc::InsecureChannelCredentials(),
                                           GrpcChannel::Options().deadline, std::move(sink))) {}

EpochChannel::~EpochChannel() = default;

void EpochChannel::Send(Message message) { implementation_->Send(std::move(message)); }

}  // namespace covey
