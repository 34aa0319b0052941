// SPDX-License-Identifier: Apache-2.0
#include "client/cli/events/events_view.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::cli {
namespace {

using ::testing::HasSubstr;

void Add(proto::StatusReply& status, uint64_t sequence, uint64_t at_ms, const std::string& text,
         const std::string& kind = "node") {
  proto::Event& event = *status.add_events();
  event.set_sequence(sequence);
  event.set_at_ms(at_ms);
  event.set_text(text);
  event.add_kinds(kind);
}

proto::StatusReply Status() {
  proto::StatusReply status;
  status.set_uptime_ms(10'000);
  Add(status, 1, 100, "worker-1 registered");
  Add(status, 2, 9000, "worker-10 dead: silent for 2.6 s");
  return status;
}

TEST(EventsViewTest, AnEventWithoutKindIsOther) {
  proto::Event event;
  EXPECT_THAT(KindsOfEvent(event), testing::ElementsAre("other"));
  event.add_kinds("node");
  event.add_kinds("shards");
  EXPECT_THAT(KindsOfEvent(event), testing::ElementsAre("node", "shards"));
}

TEST(EventsViewTest, PrintsEachEventOnceNewestLast) {
  EventPrinter printer({}, EventFormat::kText);
  proto::StatusReply status = Status();
  EXPECT_EQ(printer.Print(status),
            "       0.1 s  node       worker-1 registered\n"
            "       9.0 s  node       worker-10 dead: silent for 2.6 s\n");
  EXPECT_EQ(printer.Print(status), "");
}

TEST(EventsViewTest, Filters) {
  EXPECT_THAT(EventPrinter({.node = "worker-1"}, EventFormat::kText).Print(Status()),
              testing::Not(HasSubstr("worker-10")));
  EXPECT_EQ(EventPrinter({.kind = "table"}, EventFormat::kText).Print(Status()), "");
  EXPECT_THAT(EventPrinter({.since = absl::Seconds(2)}, EventFormat::kText).Print(Status()),
              testing::Not(HasSubstr("registered")));
  EXPECT_TRUE(EventFilter{.kind = "node"}.Check().ok());
  EXPECT_THAT(EventFilter{.kind = "nodes"}.Check().message(), HasSubstr("choose one of node, "));
}

TEST(EventsViewTest, SaysWhatWasDroppedAndThatTheSchedulerWasRestarted) {
  EventPrinter printer({.kind = "job"}, EventFormat::kText);
  printer.Print(Status());
  proto::StatusReply later;
  later.set_uptime_ms(20'000);
  Add(later, 5, 15'000, "worker-1 left");
  EXPECT_EQ(printer.Print(later), "-- the scheduler no longer keeps 2 events here --\n");
  EXPECT_EQ(printer.Print(Status()),
            "-- the scheduler has been restarted: its events begin again --\n");
}

TEST(EventsViewTest, JsonLinesAreValidWhateverTheTextIs) {
  proto::StatusReply status;
  Add(status, 3, 1500, "worker-1 left: \xff\n\"done\"");
  const std::string text = EventPrinter({}, EventFormat::kJson).Print(status);
  const size_t end = text.find('\n');
  EXPECT_EQ(nlohmann::json::parse(text.substr(0, end))["dropped"], 2);
  const auto json = nlohmann::json::parse(text.substr(end + 1));
  EXPECT_EQ(json["sequence"], 3);
  EXPECT_EQ(json["kinds"], nlohmann::json({"node"}));
  EXPECT_EQ(json["at_seconds"], 1.5);
  EXPECT_EQ(json["text"], "worker-1 left: \xef\xbf\xbd\n\"done\"");
  EXPECT_EQ(text.find('\n', end + 1), text.size() - 1) << "a line for each";
}

}  // namespace
}  // namespace covey::cli
