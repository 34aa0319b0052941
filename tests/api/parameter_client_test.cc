// SPDX-License-Identifier: Apache-2.0

// Every public method of ParameterClient, against a scheduler and a server behind real sockets.
#include "client/parameter_client.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/contract/contract.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/scheduler.pb.h"
#include "proto/table.pb.h"
#include "tests/api/cluster.h"

namespace covey::client {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(20);

proto::TableSpec Spec(const std::string& name) {
  proto::TableSpec spec;
  spec.set_name(name);
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(4);
  spec.mutable_learning_rate()->set_base(1);
  spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
  return spec;
}

class ParameterClientTest : public ::testing::Test {
 protected:
  std::unique_ptr<ParameterClient> Connect() {
    auto client = ParameterClient::Connect(
        {.scheduler = cluster_.scheduler(), .operation_deadline = kPatience});
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  Table MustCreate(const std::string& name) {
    absl::StatusOr<Table> table = client_->CreateTable(Spec(name));
    EXPECT_TRUE(table.ok()) << table.status();
    return table.value_or(Table());
  }

  const Cluster cluster_{{}};
  const std::unique_ptr<ParameterClient> client_ = Connect();
};

TEST_F(ParameterClientTest, CreatesATableFindsItListsItAndDropsIt) {
  const Table table = MustCreate("w");
  EXPECT_EQ(table.name, "w");
  EXPECT_EQ(table.elements, 4u);
  const absl::StatusOr<Table> found = client_->FindTable("w");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->id, table.id);
  const absl::StatusOr<std::vector<proto::Table>> listed = client_->ListTables();
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ(listed->front().spec().name(), "w");
  EXPECT_TRUE(client_->DropTable("w").ok());
  EXPECT_TRUE(absl::IsNotFound(client_->FindTable("w").status()));
  EXPECT_TRUE(absl::IsNotFound(client_->DropTable("w")));
}

TEST_F(ParameterClientTest, SetsTheContractOfATable) {
  MustCreate("w");
  const Contract buffered{.kind = Contract::Kind::kBuffered, .buffer = 3};
  const absl::Status set = client_->SetContract("w", buffered);
  EXPECT_TRUE(set.ok()) << set;
  const absl::StatusOr<std::vector<proto::Table>> listed = client_->ListTables();
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ(listed->front().contract().kind(), proto::Contract::BUFFERED);
  EXPECT_EQ(client_->SetContract("v", buffered).code(), absl::StatusCode::kNotFound);
}

TEST_F(ParameterClientTest, PushesAndPulls) {
  const Table table = MustCreate("w");
  const std::vector<float> gradient = {1, 2, 3, 4};
  std::vector<float> values(4);
  EXPECT_TRUE(client_->Push(table, gradient).Wait().ok());
  EXPECT_TRUE(client_->Flush(kPatience).ok());
  EXPECT_TRUE(client_->Pull(table, std::span<float>(values)).Wait().ok());
  EXPECT_EQ(values, (std::vector<float>{-1, -2, -3, -4}));
  EXPECT_TRUE(client_->PushPull(table, gradient, std::span<float>(values)).Wait().ok());
  EXPECT_EQ(values, (std::vector<float>{-2, -4, -6, -8}));
  const auto counters = client_->GetCounters();
  ASSERT_TRUE(counters.ok()) << counters.status();
  EXPECT_EQ(counters->lost_pushes, 0u);
}

TEST_F(ParameterClientTest, TwoClientsMeetAtABarrier) {
  const std::unique_ptr<ParameterClient> other = Connect();
  EXPECT_NE(client_->node(), other->node());
  const absl::Status alone = client_->Barrier("alone", 2, absl::Milliseconds(20));
  EXPECT_EQ(alone.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(client_->Barrier("one", 1, kPatience).ok());
}

TEST_F(ParameterClientTest, ShowsTheStatusOfTheCluster) {
  MustCreate("w");
  const absl::StatusOr<proto::StatusReply> status = client_->GetStatus();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->view().tables_size(), 1);
  EXPECT_EQ(status->nodes_size(), 2);
  ASSERT_GT(status->events_size(), 0);
  const absl::StatusOr<proto::StatusReply> later =
      client_->GetStatus(status->events(status->events_size() - 1).sequence());
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ(later->events_size(), 0);
}

TEST_F(ParameterClientTest, SaysWhyItCannotJoin) {
  const auto stranger =
      ParameterClient::Connect({.scheduler = cluster_.scheduler(), .job = "another"});
  EXPECT_EQ(stranger.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(stranger.status().message()), HasSubstr("'default'"));
}

}  // namespace
}  // namespace covey::client
