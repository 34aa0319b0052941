// SPDX-License-Identifier: Apache-2.0
#include "common/trace/process_trace.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>

#include "common/cluster/limits.h"

namespace covey {
namespace {

const absl::Time kT = absl::UnixEpoch() + absl::Seconds(100);

Message Push(NodeId from, NodeId to) {
  Message message;
  message.envelope.mutable_push_request();
  message.envelope.mutable_header()->set_node(from.value());
  message.envelope.mutable_header()->set_request_id(7);
  message.set_to({to, 1});
  message.frames.push_back(Buffer::Allocate(24));
  return message;
}

// All spans of all threads, with their names.
std::vector<std::pair<std::string, proto::TracedSpan>> SpansOf(
    const std::vector<proto::TracePiece>& pieces) {
  std::vector<std::pair<std::string, proto::TracedSpan>> spans;
  for (const proto::TracePiece& piece : pieces) {
    for (const proto::TracedThread& thread : piece.threads()) {
      for (const proto::TracedSpan& span : thread.spans()) {
        spans.emplace_back(thread.name() + ": " + thread.names(static_cast<int>(span.name())),
                           span);
      }
    }
  }
  return spans;
}

uint64_t Dropped(const std::vector<proto::TracePiece>& pieces) {
  uint64_t dropped = 0;
  for (const proto::TracePiece& piece : pieces) {
    for (const proto::TracedThread& thread : piece.threads()) dropped += thread.dropped();
  }
  return dropped;
}

TEST(ProcessTraceTest, RecordsNothingWhenNoTraceIsUnderWay) {
  ProcessTrace trace(1);
  ThreadTrace& thread = trace.AddThread("data-1");
  EXPECT_FALSE(thread.on());
  thread.Add(proto::TracedSpan::TASK, "timer", kT, kT);
  trace.Begin(10);
  EXPECT_TRUE(thread.on());
  trace.End(nullptr);
  EXPECT_FALSE(thread.on());
  thread.Add(proto::TracedSpan::TASK, "timer", kT, kT);
  trace.Begin(10);
  EXPECT_TRUE(SpansOf(trace.End(nullptr)).empty());
}

TEST(ProcessTraceTest, AMessageHasTheSameNumberAtBothEnds) {
  ProcessTrace worker(1);
  ProcessTrace server(2);
  ThreadTrace& sends = worker.AddThread("loop");
  ThreadTrace& receives = server.AddThread("data-1");
  worker.Begin(10);
  server.Begin(10);
  Message message = Push(NodeId(5), NodeId(3));
  const ThreadTrace::MessageFacts outgoing = sends.Sending(message);
  sends.Sent(kT, kT + absl::Microseconds(2), outgoing);
  receives.Received(kT + absl::Microseconds(9), kT + absl::Microseconds(30), message);

  const auto sent = SpansOf(worker.End(nullptr));
  const auto received = SpansOf(server.End(nullptr));
  ASSERT_EQ(sent.size(), 1u);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(sent[0].first, "loop: push_request");
  EXPECT_EQ(received[0].first, "data-1: push_request");
  EXPECT_EQ(sent[0].second.kind(), proto::TracedSpan::SENT);
  EXPECT_EQ(received[0].second.kind(), proto::TracedSpan::RECEIVED);
  EXPECT_NE(sent[0].second.message(), 0u);
  EXPECT_EQ(sent[0].second.message(), received[0].second.message());
  EXPECT_EQ(sent[0].second.peer(), 3u);
  EXPECT_EQ(received[0].second.peer(), 5u);
  EXPECT_EQ(received[0].second.bytes(), 24u);
  EXPECT_EQ(received[0].second.request(), 7u);
  EXPECT_EQ(received[0].second.begin_ns(), absl::ToUnixNanos(kT) + 9000);
  EXPECT_EQ(received[0].second.duration_ns(), 21000u);
}

TEST(ProcessTraceTest, NumbersOfMessagesDiffer) {
  std::set<uint64_t> numbers;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    ProcessTrace trace(seed);
    ThreadTrace& a = trace.AddThread("a");
    ThreadTrace& b = trace.AddThread("b");
    trace.Begin(10);
    for (int i = 0; i < 100; ++i) {
      Message message = Push(NodeId(1), NodeId(2));
      (i % 2 == 0 ? a : b).Sending(message);
      numbers.insert(message.envelope.trace_id());
    }
  }
  EXPECT_EQ(numbers.size(), 1000u);
}

TEST(ProcessTraceTest, KeepsAsManySpansAsToldAndCountsTheOthers) {
  ProcessTrace trace(1);
  ThreadTrace& a = trace.AddThread("a");
  ThreadTrace& b = trace.AddThread("b");
  trace.Begin(5);
  for (int i = 0; i < 4; ++i) {
    a.Add(proto::TracedSpan::PROGRAM, "compute", kT, kT, 3);
    b.Add(proto::TracedSpan::PROGRAM, "wait", kT, kT, 4);
  }
  const auto pieces = trace.End(nullptr);
  EXPECT_EQ(SpansOf(pieces).size(), 5u);
  EXPECT_EQ(Dropped(pieces), 3u);
  EXPECT_EQ(SpansOf(pieces)[0].second.step(), 3u);
}

TEST(ProcessTraceTest, PiecesAreBoundedAndComplete) {
  ProcessTrace trace(1);
  ThreadTrace& a = trace.AddThread("a");
  ThreadTrace& b = trace.AddThread("b");
  trace.Begin(kTraceSpansMax);
  constexpr int kSpans = 30000;
  for (int i = 0; i < kSpans; ++i) {
    const absl::Time begin = kT + i * absl::Microseconds(10);
    (i < kSpans / 2 ? a : b)
        .Add(proto::TracedSpan::PROGRAM, "name " + std::to_string(i % 1000), begin,
             begin + absl::Microseconds(5), static_cast<uint64_t>(i));
  }
  proto::ClockRelation clock;
  clock.set_error_ns(5);
  const auto pieces = trace.End(&clock);
  EXPECT_GT(pieces.size(), 1u);
  for (size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_LE(pieces[i].ByteSizeLong(), kTracePieceBytesMax);
    EXPECT_EQ(pieces[i].number(), i);
    EXPECT_EQ(pieces[i].is_last(), i + 1 == pieces.size());
    EXPECT_EQ(pieces[i].has_clock(), i == 0);
  }
  const auto spans = SpansOf(pieces);
  ASSERT_EQ(spans.size(), static_cast<size_t>(kSpans));
  for (int i = 0; i < kSpans; ++i) {
    ASSERT_EQ(spans[static_cast<size_t>(i)].second.step(), static_cast<uint64_t>(i));
  }
  // Names beyond the limit have one in common.
  EXPECT_EQ(spans[0].first, "a: name 0");
  EXPECT_EQ(spans[999].first, "a: other");
}

TEST(ProcessTraceTest, AProcessWithoutThreadsHasAnEmptyLastPiece) {
  ProcessTrace trace(1);
  trace.Begin(10);
  const auto pieces = trace.End(nullptr);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_TRUE(pieces[0].is_last());
}

TEST(ProcessTraceTest, ThreadsRecordWhileItEnds) {
  ProcessTrace trace(1);
  ThreadTrace& thread = trace.AddThread("a");
  std::atomic<bool> stop{false};
  std::thread recording([&] {
    while (!stop) thread.Add(proto::TracedSpan::TASK, "timer", kT, kT);
  });
  size_t recorded = 0;
  for (int i = 0; i < 50; ++i) {
    trace.Begin(1000);
    std::this_thread::yield();
    recorded += SpansOf(trace.End(nullptr)).size();
  }
  stop = true;
  recording.join();
  EXPECT_LE(recorded, 50u * 1000u);
}

}  // namespace
}  // namespace covey
