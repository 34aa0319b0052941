// SPDX-License-Identifier: Apache-2.0
#include "client/cli/scale/quarantine_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace covey::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

proto::QuarantineRequest RequestOf(bool release) {
  proto::QuarantineRequest request;
  request.set_producer("group-3");
  request.set_release(release);
  return request;
}

proto::QuarantineReply Reply() {
  proto::QuarantineReply reply;
  reply.set_epoch(41);
  return reply;
}

void AddTable(proto::ClusterView& view, const std::string& name, bool has_gate) {
  proto::TableSpec& spec = *view.add_tables()->mutable_spec();
  spec.set_name(name);
  if (has_gate) spec.mutable_norm_gate()->set_factor(20);
}

proto::ClusterView View() {
  proto::ClusterView view;
  AddTable(view, "w", true);
  AddTable(view, "bias", false);
  for (const uint64_t epoch : {40, 41}) {
    proto::QuarantinedProducer& entry = *view.add_quarantined();
    entry.set_is_group(true);
    entry.set_id(epoch - 38);
    entry.set_epoch(epoch);
    entry.set_reason(epoch == 41 ? "by request, asked by hand" : "");
  }
  return view;
}

TEST(QuarantineViewTest, SaysWhatItMeansAndHowItEnds) {
  EXPECT_EQ(QuarantineText(RequestOf(false), Reply(), View()),
            "group-3 is quarantined since epoch 41: none of its pushes to the tables with a gate "
            "is applied (w)\nto release it: covey quarantine group-3 --release\n");
  EXPECT_THAT(QuarantineText(RequestOf(true), Reply(), View()),
              HasSubstr("group-3 is released since epoch 41: its pushes are applied again"));
}

TEST(QuarantineViewTest, SaysWhenItHasNoEffect) {
  EXPECT_THAT(QuarantineText(RequestOf(false), Reply(), proto::ClusterView()),
              HasSubstr("without effect: no table has a gate"));
}

TEST(QuarantineViewTest, FewTablesAreNamed) {
  proto::ClusterView view = View();
  for (int i = 0; i < 6; ++i) AddTable(view, std::to_string(i), true);
  const std::string text = QuarantineText(RequestOf(false), Reply(), view);
  EXPECT_THAT(text, HasSubstr("(w, 0, 1, 2, 3 and 2 more)"));
  EXPECT_THAT(text, Not(HasSubstr("bias")));
}

TEST(QuarantineViewTest, JsonHasTheReason) {
  const auto json = nlohmann::json::parse(QuarantineJson(RequestOf(false), Reply(), View()));
  EXPECT_EQ(json["producer"], "group-3");
  EXPECT_EQ(json["state"], "quarantined");
  EXPECT_EQ(json["epoch"], 41);
  EXPECT_EQ(json["reason"], "by request, asked by hand");
  EXPECT_EQ(json["tables"], nlohmann::json({"w"}));
  const auto released = nlohmann::json::parse(QuarantineJson(RequestOf(true), Reply(), View()));
  EXPECT_EQ(released["state"], "released");
  EXPECT_FALSE(released.contains("reason"));
}

}  // namespace
}  // namespace covey::cli
