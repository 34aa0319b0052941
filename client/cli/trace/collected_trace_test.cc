// SPDX-License-Identifier: Apache-2.0
#include "client/cli/trace/collected_trace.h"

#include <gtest/gtest.h>

#include <limits>

namespace covey::cli {
namespace {

constexpr int64_t kMs = 1'000'000;

// A node whose clock is ahead of the scheduler's; times of its spans are the scheduler's.
class Reporter {
 public:
  Reporter(uint64_t node, const std::string& name, int64_t ahead_ns, int64_t error_ns,
           int64_t wrong_by_ns = 0)
      : ahead_ns_(ahead_ns) {
    piece_.set_node(node);
    piece_.set_name(name);
    piece_.set_is_last(true);
    piece_.mutable_clock()->set_offset_ns(wrong_by_ns - ahead_ns);
    piece_.mutable_clock()->set_error_ns(error_ns);
    piece_.add_threads()->set_name("loop");
    piece_.mutable_threads(0)->add_names("push_request");
  }

  void Add(proto::TracedSpan::Kind kind, int64_t begin_ns, uint64_t message) {
    proto::TracedSpan& span = *piece_.mutable_threads(0)->add_spans();
    span.set_kind(kind);
    span.set_begin_ns(begin_ns + ahead_ns_);
    span.set_duration_ns(1000);
    span.set_message(message);
  }
  const proto::TracePiece& piece() const { return piece_; }

 private:
  const int64_t ahead_ns_;
  proto::TracePiece piece_;
};

const CollectedSpan& FirstSpan(const CollectedTrace& trace, uint64_t node) {
  return trace.nodes().at(NodeId(node)).threads.at("loop").spans.at(0);
}

TEST(CollectedTraceTest, PutsSpansOnTheSchedulersClock) {
  Reporter server(2, "server-0", 500 * kMs, kMs);
  server.Add(proto::TracedSpan::TASK, 7 * kMs, 0);
  CollectedTrace trace;
  trace.Add(server.piece());
  trace.Align();
  EXPECT_EQ(FirstSpan(trace, 2).begin_ns, 7 * kMs);
  EXPECT_EQ(FirstSpan(trace, 2).end_ns, 7 * kMs + 1000);
}

TEST(CollectedTraceTest, AClockThatRunsFastIsCorrectedByItsDrift) {
  proto::TracePiece piece;
  piece.set_node(2);
  piece.mutable_clock()->set_at_ns(1000 * kMs);
  piece.mutable_clock()->set_drift(-1e-3);
  piece.mutable_clock()->set_error_ns(1);
  proto::TracedThread& thread = *piece.add_threads();
  thread.set_name("loop");
  thread.add_names("timer");
  thread.add_spans()->set_begin_ns(2000 * kMs);
  CollectedTrace trace;
  trace.Add(piece);
  trace.Align();
  EXPECT_EQ(FirstSpan(trace, 2).begin_ns, 1999 * kMs);
}

TEST(CollectedTraceTest, MovesNodesWithinTheirErrorsSoThatNoMessageArrivesTooSoon) {
  // The worker's clock is wrong by 2 ms, its error says up to 3 ms. A message takes 0.1 ms.
  Reporter server(2, "server-0", 0, 1);
  Reporter worker(3, "worker-0", -800 * kMs, 3 * kMs, 2 * kMs);
  worker.Add(proto::TracedSpan::SENT, 10 * kMs, 77);
  server.Add(proto::TracedSpan::RECEIVED, 10 * kMs + kMs / 10, 77);
  CollectedTrace trace;
  trace.Add(server.piece());
  trace.Add(worker.piece());
  trace.Align();
  EXPECT_EQ(trace.messages(), 1u);
  EXPECT_EQ(trace.backward(), 0u);
  EXPECT_LE(FirstSpan(trace, 3).begin_ns, FirstSpan(trace, 2).begin_ns);
  EXPECT_GE(FirstSpan(trace, 3).begin_ns, 10 * kMs);
}

TEST(CollectedTraceTest, TellsOfMessagesThatErrorsDoNotExplain) {
  Reporter server(2, "server-0", 0, 1);
  Reporter worker(3, "worker-0", 0, kMs, 5 * kMs);
  worker.Add(proto::TracedSpan::SENT, 10 * kMs, 77);
  server.Add(proto::TracedSpan::RECEIVED, 10 * kMs, 77);
  CollectedTrace trace;
  trace.Add(server.piece());
  trace.Add(worker.piece());
  trace.Align();
  EXPECT_EQ(trace.backward(), 1u);
  EXPECT_EQ(trace.backward_by(), absl::Milliseconds(4) - absl::Nanoseconds(1));
  EXPECT_EQ(trace.nodes().at(NodeId(3)).shift, -absl::Milliseconds(1));
}

TEST(CollectedTraceTest, ANameThatIsNotThereIsIgnored) {
  Reporter server(2, "server-0", 0, 1);
  server.Add(proto::TracedSpan::TASK, 0, 0);
  proto::TracePiece piece = server.piece();
  piece.mutable_threads(0)->mutable_spans(0)->set_name(9);
  piece.mutable_threads(0)->set_dropped(4);
  CollectedTrace trace;
  trace.Add(piece);
  trace.Align();
  EXPECT_EQ(trace.spans(), 0u);
  EXPECT_EQ(trace.dropped(), 4u);
}

TEST(CollectedTraceTest, ALaterPieceWithFewerNamesTakesNoneAway) {
  Reporter server(2, "server-0", 0, 1);
  server.Add(proto::TracedSpan::TASK, kMs, 0);
  proto::TracePiece shorter = server.piece();
  shorter.mutable_threads(0)->clear_names();
  CollectedTrace trace;
  trace.Add(server.piece());
  trace.Add(shorter);
  const CollectedThread& thread = trace.nodes().at(NodeId(2)).threads.at("loop");
  for (const CollectedSpan& span : thread.spans) EXPECT_LT(span.name, thread.names.size());
}

TEST(CollectedTraceTest, LeavesOutTimesThatNoClockShows) {
  constexpr int64_t kFirst = std::numeric_limits<int64_t>::min();
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  Reporter server(2, "server-0", 0, kMs);
  server.Add(proto::TracedSpan::SENT, kFirst, 77);
  server.Add(proto::TracedSpan::SENT, kLast, 78);
  Reporter worker(3, "worker-0", 0, kMs);
  worker.Add(proto::TracedSpan::RECEIVED, kMs, 77);
  CollectedTrace trace;
  trace.Add(server.piece());
  trace.Add(worker.piece());
  trace.Align();
  EXPECT_EQ(trace.spans(), 1u);
  EXPECT_EQ(trace.messages(), 0u);
}

TEST(CollectedTraceTest, AClockWithAnImpossibleErrorCountsAsUnknown) {
  for (const int64_t error : {int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    Reporter server(2, "server-0", 0, error);
    Reporter worker(3, "worker-0", 0, kMs);
    server.Add(proto::TracedSpan::RECEIVED, kMs, 77);
    worker.Add(proto::TracedSpan::SENT, 3 * kMs, 77);
    CollectedTrace trace;
    trace.Add(server.piece());
    trace.Add(worker.piece());
    trace.Align();
    EXPECT_EQ(trace.nodes().at(NodeId(2)).clock_error, absl::ZeroDuration());
    EXPECT_EQ(trace.nodes().at(NodeId(2)).shift, absl::ZeroDuration());
  }
}

}  // namespace
}  // namespace covey::cli
