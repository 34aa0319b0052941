// SPDX-License-Identifier: Apache-2.0
#include "client/cli/status/gate_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "client/cli/status/status_view.h"
#include "client/cli/testing/status_fixture.h"

namespace covey::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

proto::GatedProducer& AddGated(proto::StatusReply& status, int server, bool is_group, uint64_t id,
                               uint32_t shard) {
  proto::GatedProducer& gated = *status.mutable_nodes(server)->mutable_load()->add_gated();
  gated.set_is_group(is_group);
  gated.set_id(id);
  gated.set_table(1);
  gated.set_shard(shard);
  return gated;
}

// Group 3 has pushes beyond the gate on two servers, and is in quarantine; worker-0, as a client,
// has had one.
proto::StatusReply Gated() {
  proto::StatusReply status = StatusForTests();
  proto::NormGate& gate =
      *status.mutable_view()->mutable_tables(0)->mutable_spec()->mutable_norm_gate();
  gate.set_factor(20);
  gate.set_quarantine_after(8);
  proto::GatedProducer& early = AddGated(status, 0, false, 3, 0);
  early.set_pushes(1200);
  early.set_beyond(1);
  early.set_usual(0.11);
  proto::GatedProducer& less = AddGated(status, 0, true, 3, 0);
  less.set_pushes(100);
  less.set_beyond(7);
  less.set_beyond_in_row(2);
  proto::GatedProducer& worst = AddGated(status, 1, true, 3, 1);
  worst.set_pushes(120);
  worst.set_beyond(8);
  worst.set_beyond_in_row(8);
  worst.set_usual(8123);
  worst.set_usual_of_others(0.1234);
  proto::QuarantinedProducer& entry = *status.mutable_view()->add_quarantined();
  entry.set_is_group(true);
  entry.set_id(3);
  entry.set_epoch(41);
  entry.set_reason("8 pushes in a row");
  return status;
}

TEST(GateViewTest, AQuarantineIsShownWithItsEvidenceAndTheWayOut) {
  proto::StatusReply status = Gated();
  EXPECT_THAT(QuarantineLines(status.view()),
              ElementsAre("group-3 is quarantined since epoch 41: 8 pushes in a row; to release "
                          "it: covey quarantine group-3 --release"));
  status.mutable_view()->mutable_quarantined(0)->set_is_group(false);
  EXPECT_THAT(QuarantineLines(status.view())[0], HasSubstr("worker-0 is quarantined"));
  EXPECT_THAT(QuarantineLines(StatusForTests().view()), IsEmpty());
}

TEST(GateViewTest, EachProducerHasALineWithItsWorstShard) {
  EXPECT_EQ(GatedText(Gated()),
            "Pushes beyond the gate\n"
            "PRODUCER  TABLE                 SHARD  PUSHES  BEYOND  IN A ROW  USUAL NORM  "
            "OTHERS' NORM  QUARANTINED\n"
            "group-3   hidden/weight  1 and 1 more     120       8    8 of 8       8,120  "
            "       0.123  since epoch 41\n"
            "worker-0  hidden/weight             0   1,200       1    0 of 8        0.11  "
            "           -  -\n");
}

TEST(GateViewTest, WithoutPushesBeyondAGateThereIsNoTable) {
  EXPECT_EQ(GatedText(StatusForTests()), "");
  EXPECT_THAT(StatusText(StatusForTests()), Not(HasSubstr("gate")));
  proto::StatusReply status = Gated();
  status.mutable_view()->clear_tables();
  EXPECT_EQ(GatedText(status), "") << "the table was dropped";
}

TEST(GateViewTest, ATableThatNeverQuarantinesShowsNoLimit) {
  proto::StatusReply status = Gated();
  status.mutable_view()
      ->mutable_tables(0)
      ->mutable_spec()
      ->mutable_norm_gate()
      ->clear_quarantine_after();
  EXPECT_THAT(GatedText(status), Not(HasSubstr("8 of")));
}

TEST(GateViewTest, ALongTableIsCutShort) {
  proto::StatusReply status = Gated();
  for (uint64_t id = 100; id < 120; ++id) AddGated(status, 0, true, id, 0);
  EXPECT_THAT(GatedText(status), HasSubstr("\n2 more, see -o json\n"));
  EXPECT_EQ(GatedJson(status).size(), 22u);
}

TEST(GateViewTest, StatusShowsBoth) {
  const std::string text = StatusText(Gated());
  EXPECT_THAT(text, HasSubstr("\n  group-3 is quarantined since epoch 41: 8 pushes in a row; "));
  EXPECT_THAT(text, HasSubstr("\n\nPushes beyond the gate\nPRODUCER"));
  EXPECT_EQ(Problems(Gated()), Problems(StatusForTests())) << "the cluster is as healthy as before";
  const auto summary = nlohmann::json::parse(StatusJson(Gated()))["summary"];
  ASSERT_EQ(summary["quarantined"].size(), 1u);
  EXPECT_EQ(summary["quarantined"][0]["producer"], "group-3");
  EXPECT_EQ(summary["quarantined"][0]["since_epoch"], 41);
  ASSERT_EQ(summary["gated"].size(), 2u);
  EXPECT_EQ(summary["gated"][0]["table"], "hidden/weight");
  EXPECT_EQ(summary["gated"][0]["shards"], 2);
  EXPECT_EQ(summary["gated"][0]["beyond_in_row"], 8);
  EXPECT_EQ(summary["gated"][0]["quarantined"], true);
  EXPECT_EQ(summary["gated"][1]["producer"], "worker-0");
  EXPECT_EQ(summary["gated"][1]["quarantined"], false);
}

}  // namespace
}  // namespace covey::cli
