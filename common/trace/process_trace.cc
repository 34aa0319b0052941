// SPDX-License-Identifier: Apache-2.0
#include "common/trace/process_trace.h"

#include <algorithm>
#include <utility>

#include "common/base/random.h"
#include "common/cluster/limits.h"
#include "common/net/frame_bytes.h"

namespace covey {
namespace {

constexpr absl::string_view kOtherName = "other";
// Of a span in a piece, at most: nine fields of at most ten bytes each and their tags.
constexpr size_t kSpanBytesMax = 112;

// Fills pieces of bounded size with the spans of threads.
class PieceWriter {
 public:
  explicit PieceWriter(const proto::ClockRelation* clock) {
    pieces_.emplace_back();
    if (clock != nullptr) *pieces_.back().mutable_clock() = *clock;
  }

  void Add(proto::TracedThread thread) {
    auto& spans = *thread.mutable_spans();
    int next = 0;
    do {
      proto::TracedThread& part = NewPart(thread);
      while (next < spans.size() && room_ >= kSpanBytesMax) {
        room_ -= std::min(room_, spans[next].ByteSizeLong() + 3);
        part.add_spans()->Swap(&spans[next++]);
      }
    } while (next < spans.size());
    // Once, so that a reader may add up.
    pieces_.back().mutable_threads()->rbegin()->set_dropped(thread.dropped());
  }

  std::vector<proto::TracePiece> Finish() {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      pieces_[i].set_number(static_cast<uint32_t>(i));
      pieces_[i].set_is_last(i + 1 == pieces_.size());
    }
    return std::move(pieces_);
  }

 private:
  // Its names, in a piece with room for at least one span.
  proto::TracedThread& NewPart(const proto::TracedThread& thread) {
    size_t head = thread.name().size() + 32;
    for (const std::string& name : thread.names()) head += name.size() + 3;
    if (room_ < head + kSpanBytesMax) {
      if (pieces_.back().threads_size() > 0) pieces_.emplace_back();
      room_ = kTracePieceBytesMax - 256;
    }
    room_ -= std::min(room_, head);
    proto::TracedThread& part = *pieces_.back().add_threads();
    part.set_name(thread.name());
    *part.mutable_names() = thread.names();
    return part;
  }

  std::vector<proto::TracePiece> pieces_;
  size_t room_ = kTracePieceBytesMax - 256;
};

}  // namespace

ThreadTrace::ThreadTrace(std::string name, uint64_t first_message, Room& room)
    : name_(std::move(name)), room_(room), next_message_(first_message) {}

void ThreadTrace::Begin() {
  MutexLock lock(mutex_);
  spans_.clear();
  names_.clear();
  indexes_.clear();
  dropped_ = 0;
  on_.store(true);
}

proto::TracedThread ThreadTrace::End() {
  std::vector<Span> spans;
  proto::TracedThread thread;
  {
    MutexLock lock(mutex_);
    on_.store(false);
    spans = std::exchange(spans_, {});
    thread.mutable_names()->Add(names_.begin(), names_.end());
    thread.set_dropped(std::exchange(dropped_, 0));
  }
  thread.set_name(name_);
  thread.mutable_spans()->Reserve(static_cast<int>(spans.size()));
  for (const Span& span : spans) {
    proto::TracedSpan& out = *thread.add_spans();
    out.set_kind(span.kind);
    out.set_name(span.name);
    out.set_begin_ns(span.begin_ns);
    out.set_duration_ns(static_cast<uint64_t>(std::max<int64_t>(span.duration_ns, 0)));
    out.set_message(span.message);
    out.set_peer(span.peer);
    out.set_bytes(span.bytes);
    const bool is_message =
        span.kind == proto::TracedSpan::RECEIVED || span.kind == proto::TracedSpan::SENT;
    is_message ? out.set_request(span.request) : out.set_step(span.request);
  }
  return thread;
}

ThreadTrace::Span* ThreadTrace::NewSpan(proto::TracedSpan::Kind kind, absl::string_view name,
                                        absl::Time begin, absl::Time end) {
  if (!on()) return nullptr;
  if (room_.fetch_sub(1, std::memory_order_relaxed) <= 0) {
    ++dropped_;
    return nullptr;
  }
  Span& span = spans_.emplace_back();
  span.kind = kind;
  span.name = IndexOf(name);
  span.begin_ns = absl::ToUnixNanos(begin);
  span.duration_ns = absl::ToInt64Nanoseconds(end - begin);
  return &span;
}

uint32_t ThreadTrace::IndexOf(absl::string_view name) {
  auto found = indexes_.find(name);
  if (found != indexes_.end()) return found->second;
  if (names_.size() + 1 >= kTraceNamesMax) {
    name = kOtherName;
    found = indexes_.find(name);
    if (found != indexes_.end()) return found->second;
  }
  names_.emplace_back(name.substr(0, kNameBytesMax));
  const auto index = static_cast<uint32_t>(names_.size() - 1);
  indexes_.emplace(names_.back(), index);
  return index;
}

ThreadTrace::MessageFacts ThreadTrace::FactsOf(const Message& message, NodeId peer) {
  return {.name = BodyName(message.envelope),
          .message = message.envelope.trace_id(),
          .peer = peer.value(),
          .bytes = FrameBytes(message),
          .request = message.envelope.header().request_id()};
}

void ThreadTrace::Received(absl::Time begin, absl::Time end, const Message& message) {
  if (!on()) return;
  AddMessage(proto::TracedSpan::RECEIVED, begin, end, FactsOf(message, message.from().node));
}

ThreadTrace::MessageFacts ThreadTrace::Sending(Message& message) {
  message.envelope.set_trace_id(MixBits(next_message_.fetch_add(1, std::memory_order_relaxed)) | 1);
  return FactsOf(message, message.to().node);
}

void ThreadTrace::Sent(absl::Time begin, absl::Time end, const MessageFacts& message) {
  AddMessage(proto::TracedSpan::SENT, begin, end, message);
}

void ThreadTrace::AddMessage(proto::TracedSpan::Kind kind, absl::Time begin, absl::Time end,
                             const MessageFacts& message) {
  MutexLock lock(mutex_);
  Span* const span = NewSpan(kind, message.name, begin, end);
  if (span == nullptr) return;
  span->message = message.message;
  span->peer = message.peer;
  span->bytes = message.bytes;
  span->request = message.request;
}

void ThreadTrace::Add(proto::TracedSpan::Kind kind, absl::string_view name, absl::Time begin,
                      absl::Time end, uint64_t step) {
  if (!on()) return;
  MutexLock lock(mutex_);
  if (Span* const span = NewSpan(kind, name, begin, end)) span->request = step;
}

ThreadTrace& ProcessTrace::AddThread(std::string name) {
  MutexLock lock(mutex_);
  return threads_.emplace_back(std::move(name), MixBits(MixBits(seed_) + threads_.size()), room_);
}

void ProcessTrace::Begin(uint32_t spans_max) {
  MutexLock lock(mutex_);
  room_.store(std::min(spans_max, kTraceSpansMax));
  for (ThreadTrace& thread : threads_) thread.Begin();
}

std::vector<proto::TracePiece> ProcessTrace::End(const proto::ClockRelation* clock) {
  PieceWriter writer(clock);
  MutexLock lock(mutex_);
  for (ThreadTrace& thread : threads_) writer.Add(thread.End());
  return writer.Finish();
}

}  // namespace covey
