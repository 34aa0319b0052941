// SPDX-License-Identifier: Apache-2.0
#include "client/cli/trace/chrome_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace covey::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kMs = 1'000'000;

// Reports of a worker that pushes, waits, and computes, and of a server that answers late.
class ChromeTraceTest : public testing::Test {
 protected:
  ChromeTraceTest() {
    worker_ = NewNode(5, "worker-0", "program");
    Add(*worker_.mutable_threads(0), proto::TracedSpan::PROGRAM, "compute", 0, 3 * kMs);
    Add(*worker_.mutable_threads(0), proto::TracedSpan::PROGRAM, "step", 0, 9 * kMs);
    Add(*worker_.mutable_threads(0), proto::TracedSpan::OPERATION, "weights", 2 * kMs, 8 * kMs);
    proto::TracedThread& loop = *worker_.add_threads();
    loop.set_name("loop");
    AddMessage(loop, proto::TracedSpan::SENT, "push_request", 4 * kMs, 4 * kMs + 1000, 70, 2);
    AddMessage(loop, proto::TracedSpan::RECEIVED, "push_reply", 8 * kMs, 8 * kMs + 1000, 71, 2);
    server_ = NewNode(2, "server-0", "data-1");
    proto::TracedThread& data = *server_.mutable_threads(0);
    AddMessage(data, proto::TracedSpan::RECEIVED, "push_request", 5 * kMs, 6 * kMs, 70, 5);
    AddMessage(data, proto::TracedSpan::SENT, "push_reply", 7 * kMs, 7 * kMs + 1000, 71, 5);
  }

  static proto::TracePiece NewNode(uint64_t id, const std::string& name,
                                   const std::string& thread) {
    proto::TracePiece piece;
    piece.set_node(id);
    piece.set_name(name);
    piece.set_is_last(true);
    piece.mutable_clock()->set_error_ns(20'000);
    piece.add_threads()->set_name(thread);
    return piece;
  }
  static proto::TracedSpan& Add(proto::TracedThread& thread, proto::TracedSpan::Kind kind,
                                const std::string& name, int64_t begin, int64_t end) {
    proto::TracedSpan& span = *thread.add_spans();
    span.set_kind(kind);
    span.set_name(static_cast<uint32_t>(thread.names_size()));
    thread.add_names(name);
    span.set_begin_ns(begin);
    span.set_duration_ns(static_cast<uint64_t>(end - begin));
    return span;
  }
  static void AddMessage(proto::TracedThread& thread, proto::TracedSpan::Kind kind,
                         const std::string& name, int64_t begin, int64_t end, uint64_t message,
                         uint64_t peer) {
    proto::TracedSpan& span = Add(thread, kind, name, begin, end);
    span.set_message(message);
    span.set_peer(peer);
    span.set_request(9);
    span.set_bytes(4096);
  }

  std::string Text(const std::vector<TraceMoment>& moments = {}) {
    CollectedTrace trace;
    trace.Add(server_);
    trace.Add(worker_);
    trace.Align();
    return ChromeTrace(trace, {{NodeId(2), "host-a"}}, moments, 0);
  }
  // "X compute 5/1 0.000+3000.000", in the order of the file; names of processes left out.
  std::vector<std::string> Lines(const std::string& text, const std::string& phases) {
    std::vector<std::string> lines;
    const nlohmann::json all = nlohmann::json::parse(text);
    for (const auto& event : all["traceEvents"]) {
      const std::string phase = event["ph"];
      if (phases.find(phase) == std::string::npos) continue;
      std::string line = phase + " " + event["name"].get<std::string>() + " " +
                         event["pid"].dump() + "/" + event["tid"].dump() + " " + event["ts"].dump();
      if (event.contains("dur")) line += "+" + event["dur"].dump();
      lines.push_back(line);
    }
    return lines;
  }

  proto::TracePiece worker_;
  proto::TracePiece server_;
};

TEST_F(ChromeTraceTest, SpansAreSlicesOfTheirThreads) {
  // Threads of a node are in the order of their names: loop, program.
  EXPECT_THAT(Lines(Text(), "X"),
              ElementsAre("X push_request 2/1 5000.0+1000.0", "X send push_reply 2/1 7000.0+1.0",
                          "X send push_request 5/1 4000.0+1.0", "X push_reply 5/1 8000.0+1.0",
                          "X step 5/2 0.0+9000.0", "X compute 5/2 0.0+3000.0"));
}

TEST_F(ChromeTraceTest, MessagesAreArrowsFromSendingToHandling) {
  EXPECT_THAT(Lines(Text(), "sf"), ElementsAre("f message 2/1 5000.0", "s message 2/1 7000.0",
                                               "s message 5/1 4000.0", "f message 5/1 8000.0"));
}

TEST_F(ChromeTraceTest, RequestsTensorsAndParkedOnesAreAsynchronous) {
  EXPECT_THAT(Lines(Text(), "be"),
              ElementsAre("b parked push 2/1 6000.0", "e parked push 2/1 7000.0",
                          "b push 5/1 4000.0", "e push 5/1 8000.0", "b tensor weights 5/2 2000.0",
                          "e tensor weights 5/2 8000.0"));
}

TEST_F(ChromeTraceTest, ARequestThatIsAnsweredAtOnceWasNotParked) {
  server_.mutable_threads(0)->mutable_spans(1)->set_begin_ns(6 * kMs + 1000);
  EXPECT_THAT(Lines(Text(), "b"), ElementsAre("b push 5/1 4000.0", "b tensor weights 5/2 2000.0"));
}

TEST_F(ChromeTraceTest, AMessageOfWhichOneEndIsMissingIsNoArrow) {
  server_.mutable_threads(0)->mutable_spans(0)->set_message(999);
  EXPECT_THAT(Lines(Text(), "sf"), ElementsAre("s message 2/1 7000.0", "f message 5/1 8000.0"));
}

TEST_F(ChromeTraceTest, NamesHostsAndDecisionsAreThere) {
  const std::string text = Text({{.at_ns = 2 * kMs, .text = "worker-1 \"dead\" \xff"}});
  EXPECT_THAT(text, HasSubstr("server-0 on host-a"));
  EXPECT_THAT(text, HasSubstr("worker-1 \\\"dead\\\""));
  EXPECT_THAT(Lines(text, "i").size(), 1u);
  EXPECT_EQ(nlohmann::json::parse(text)["otherData"]["clocks"]["worker-0"]["error_at_most"],
            "20.0 µs");
}

TEST_F(ChromeTraceTest, WhatIsWrittenIsAllRight) {
  const TraceCheck check = CheckChromeTrace(Text({{.at_ns = 0, .text = "x"}}));
  EXPECT_THAT(check.problems, IsEmpty());
  EXPECT_GT(check.events, 20u);
}

class CheckChromeTraceTest : public testing::Test {
 protected:
  static std::vector<std::string> Problems(const std::string& events) {
    return CheckChromeTrace(
               R"([{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"p"}},)"
               R"({"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"t"}},)" +
               events + "]")
        .problems;
  }
};

TEST_F(CheckChromeTraceTest, TakesTheArrayWithoutItsEnd) {
  EXPECT_THAT(CheckChromeTrace(R"([{"ph":"M","name":"process_name","pid":1,"tid":0},)").problems,
              IsEmpty());
  EXPECT_THAT(CheckChromeTrace("{}").problems, ElementsAre(HasSubstr("no JSON")));
  EXPECT_THAT(CheckChromeTrace("[{").problems, ElementsAre(HasSubstr("no JSON")));
}

TEST_F(CheckChromeTraceTest, FindsEachKindOfFault) {
  const std::string slice = R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":10,"dur":5})";
  EXPECT_THAT(Problems(slice), IsEmpty());
  EXPECT_THAT(Problems(slice + R"(,{"ph":"X","name":"b","pid":1,"tid":1,"ts":12,"dur":2})"),
              IsEmpty());
  EXPECT_THAT(Problems(slice + R"(,{"ph":"X","name":"b","pid":1,"tid":1,"ts":12,"dur":9})"),
              ElementsAre(HasSubstr("does not nest")));
  EXPECT_THAT(Problems(R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":10})"),
              ElementsAre(HasSubstr("without a duration")));
  EXPECT_THAT(Problems(R"({"ph":"X","name":"a","pid":1,"tid":1,"dur":10})"),
              ElementsAre(HasSubstr("no time")));
  EXPECT_THAT(Problems(R"({"ph":"X","pid":1,"tid":1,"ts":10,"dur":1})"),
              ElementsAre(HasSubstr("no \"name\"")));
  EXPECT_THAT(Problems(R"({"name":"a"})"), ElementsAre(HasSubstr("no phase")));
  EXPECT_THAT(Problems(R"({"ph":"Q","name":"a","pid":1,"tid":1,"ts":10})"),
              ElementsAre(HasSubstr("unknown phase")));
  EXPECT_THAT(Problems(R"({"ph":"X","name":"a","pid":1,"tid":2,"ts":10,"dur":1})"),
              ElementsAre(HasSubstr("thread 2 of process 1 has no name")));
  EXPECT_THAT(Problems(R"({"ph":"i","name":"a","pid":2,"tid":0,"ts":10})"),
              ElementsAre(HasSubstr("process 2 has no name")));
  const std::string begin = R"({"ph":"b","cat":"c","id":"1","name":"a","pid":1,"tid":1,"ts":1})";
  const std::string end = R"({"ph":"e","cat":"c","id":"1","name":"a","pid":1,"tid":1,"ts":2})";
  EXPECT_THAT(Problems(begin + "," + end), IsEmpty());
  EXPECT_THAT(Problems(begin), ElementsAre(HasSubstr("does not end")));
  EXPECT_THAT(Problems(end), ElementsAre(HasSubstr("has not begun")));
  const std::string from = R"({"ph":"s","id":"1","name":"a","pid":1,"tid":1,"ts":3})";
  const std::string to = R"({"ph":"f","id":"1","name":"a","pid":1,"tid":1,"ts":2})";
  EXPECT_THAT(Problems(from), ElementsAre(HasSubstr("without an end")));
  EXPECT_THAT(Problems(to), ElementsAre(HasSubstr("without a beginning")));
  EXPECT_THAT(Problems(from + "," + to), ElementsAre(HasSubstr("ends before it begins")));
}

}  // namespace
}  // namespace covey::cli
