// SPDX-License-Identifier: Apache-2.0

// Every public method of ParameterClient, against a scheduler and a server behind real sockets.
#include "client/parameter_client.h"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/contract/contract.h"
#include "common/tensor/codec.h"
#include "common/tensor/wire_format.h"
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

TEST_F(ParameterClientTest, AGradientHasExactlyTheBytesOfItsFormat) {
  constexpr uint64_t kElements = 1000;
  proto::TableSpec spec = Spec("w");
  spec.set_shape(0, kElements);
  const absl::StatusOr<Table> table = client_->CreateTable(spec);
  ASSERT_TRUE(table.ok()) << table.status();
  const std::vector<float> gradient(kElements, 1);
  const auto bytes_in = [&](WireFormat format) {
    // A busy machine may answer so late that a push is sent again.
    while (true) {
      const Counters before = *client_->GetCounters();
      EXPECT_TRUE(client_->Push(*table, gradient, {.format = format}).Wait().ok());
      EXPECT_TRUE(client_->Flush(kPatience).ok());
      const Counters after = *client_->GetCounters();
      if (after.repeats == before.repeats) return after.bytes_sent - before.bytes_sent;
    }
  };
  const std::map<WireFormat, uint64_t> bytes = {
      {WireFormat::kFloat32, 4000},      {WireFormat::kFloat16, 2000},
      {WireFormat::kBfloat16, 2000},     {WireFormat::kInt8Block, 1016},
      {WireFormat::kFloat16Block, 2016}, {WireFormat::kFloat8Block, 1016}};
  const uint64_t header = bytes_in(WireFormat::kFloat32) - 4000;
  for (const auto& [format, expected] : bytes) {
    // The header of another format names it, in two bytes.
    EXPECT_NEAR(bytes_in(format), header + expected, 2) << WireFormatName(format);
  }
  const absl::Status refused =
      client_->Push(*table, gradient, {.format = WireFormat::kTopBlock}).Wait();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
}

TEST_F(ParameterClientTest, ValuesComeInTheFormatOfThePull) {
  constexpr uint64_t kElements = 1000;
  proto::TableSpec spec = Spec("w");
  spec.set_shape(0, kElements);
  const absl::StatusOr<Table> table = client_->CreateTable(spec);
  ASSERT_TRUE(table.ok()) << table.status();
  std::vector<float> gradient(kElements);
  for (size_t i = 0; i < kElements; ++i) gradient[i] = 1 / static_cast<float>(i + 3);
  std::vector<float> exact(kElements);
  ASSERT_TRUE(client_->PushPull(*table, gradient, exact).Wait().ok());
  for (const WireFormat format : kWireFormats) {
    if (NeedsFeedback(format)) continue;
    std::vector<uint8_t> encoded(EncodedBytes(format, kElements));
    std::vector<float> expected(kElements);
    Encode(format, exact, encoded);
    Decode(format, encoded, expected);
    std::vector<float> pulled(kElements);
    ASSERT_TRUE(client_->Pull(*table, pulled, {.format = format}).Wait().ok());
    EXPECT_EQ(pulled, expected) << WireFormatName(format);
    const std::vector<float> nothing(kElements);
    std::vector<float> pushed(kElements);
    ASSERT_TRUE(client_->PushPull(*table, nothing, pushed, {}, {.format = format}).Wait().ok());
    EXPECT_EQ(pushed, expected) << WireFormatName(format);
  }
  // Also of an optimizer without slots.
  const absl::Status refused =
      client_->PullState(*table, exact, {.format = WireFormat::kBfloat16}).Wait();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
}

// Adam, in three shards of sixteen.
TEST_F(ParameterClientTest, PullsTheOptimizersState) {
  proto::TableSpec spec = Spec("w");
  spec.set_shape(0, 48);
  spec.set_shard_bytes(64);
  spec.mutable_optimizer()->set_kind(proto::Optimizer::ADAM);
  spec.mutable_optimizer()->set_beta1(0.5);
  spec.mutable_optimizer()->set_beta2(0.75);
  spec.mutable_optimizer()->set_epsilon(1e-8);
  const absl::StatusOr<Table> table = client_->CreateTable(spec);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->slots, 2u);
  std::vector<float> gradient(48);
  for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<float>(3 * i);
  ASSERT_TRUE(client_->Push(*table, gradient, {.samples = 3}).Wait().ok());
  std::vector<float> arrays(3 * 48, -1);
  const Handle read = client_->PullState(*table, arrays);
  ASSERT_TRUE(read.Wait().ok()) << read.result().status;
  EXPECT_EQ(read.result().version, Version(1));
  EXPECT_EQ(read.result().samples, 3u);
  for (size_t i = 0; i < 48; ++i) {
    const auto mean = static_cast<float>(i);
    EXPECT_NEAR(arrays[i], i == 0 ? 0 : -1, 1e-5);
    EXPECT_EQ(arrays[48 + i], 0.5f * mean);
    EXPECT_EQ(arrays[96 + i], 0.25f * mean * mean);
  }
  EXPECT_EQ(client_->PullState(*table, std::span(arrays).first(48)).Wait().code(),
            absl::StatusCode::kInvalidArgument);
}

proto::TableSpec SparseSpec(const std::string& name, uint32_t width) {
  proto::TableSpec spec = Spec(name);
  spec.clear_shape();
  spec.mutable_sparse()->set_width(width);
  return spec;
}

TEST_F(ParameterClientTest, PushesAndPullsRows) {
  const Table table = *client_->CreateTable(SparseSpec("rows", 2));
  EXPECT_EQ(table.width, 2);
  EXPECT_EQ(table.elements, 0);
  const uint64_t far = ~uint64_t{0};
  RowBatch batch;
  ASSERT_TRUE(batch.Assign(table, std::vector<uint64_t>{7, far, 7, 0}).ok());
  EXPECT_EQ(batch.size(), 4);
  EXPECT_EQ(batch.distinct(), 3);
  std::vector<float> gradient = {1, 2, 3, 4, 10, 20, 5, 6};
  Handle push = client_->Push(table, batch, gradient);
  gradient.assign(8, 99);  // it is the caller's again
  ASSERT_TRUE(push.Wait().ok()) << push.Wait();
  ASSERT_TRUE(client_->Flush(kPatience).ok());
  std::vector<float> rows(8);
  ASSERT_TRUE(client_->Pull(table, batch, std::span<float>(rows)).Wait().ok());
  EXPECT_EQ(rows, (std::vector<float>{-11, -22, -3, -4, -11, -22, -5, -6}));
  gradient.assign(8, 1);
  ASSERT_TRUE(client_->PushPull(table, batch, gradient, std::span<float>(rows)).Wait().ok());
  EXPECT_EQ(rows, (std::vector<float>{-13, -24, -4, -5, -13, -24, -6, -7}));
  // In other words, with another batch in the same memory.
  ASSERT_TRUE(batch.Assign(table, std::vector<uint64_t>{0, 12345}).ok());
  rows.resize(4);
  ASSERT_TRUE(client_->Pull(table, batch, std::span<float>(rows)).Wait().ok());
  EXPECT_EQ(rows, (std::vector<float>{-6, -7, 0, 0}));
  // Of no keys at all.
  ASSERT_TRUE(batch.Assign(table, std::vector<uint64_t>()).ok());
  EXPECT_TRUE(client_->Pull(table, batch, std::span<float>()).Wait().ok());
  EXPECT_TRUE(client_->Push(table, batch, std::span<const float>()).Wait().ok());
}

TEST_F(ParameterClientTest, SendsTheKeysOfABatchOnce) {
  const Table table = *client_->CreateTable(SparseSpec("rows", 2));
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 10'000; ++i) keys.push_back(i * 97 % 1'000'000);
  std::vector<float> rows(keys.size() * 2);
  const std::vector<float> gradient(keys.size() * 2, 1.0f);
  RowBatch batch;
  ASSERT_TRUE(batch.Assign(table, keys).ok());
  ASSERT_TRUE(client_->Pull(table, batch, std::span<float>(rows)).Wait().ok());
  const uint64_t first = client_->GetCounters()->key_bytes;
  ASSERT_TRUE(client_->Push(table, batch, gradient).Wait().ok());
  const uint64_t second = client_->GetCounters()->key_bytes - first;
  EXPECT_GT(first, keys.size());
  EXPECT_LE(second * 10, first);
  RecordProperty("first_use_bytes", static_cast<int>(first));
  RecordProperty("second_use_bytes", static_cast<int>(second));
  // The same keys in another batch.
  RowBatch later;
  ASSERT_TRUE(later.Assign(table, keys).ok());
  ASSERT_TRUE(client_->Pull(table, later, std::span<float>(rows)).Wait().ok());
  EXPECT_EQ(client_->GetCounters()->key_bytes - first, 2 * second);
  EXPECT_EQ(rows, std::vector<float>(keys.size() * 2, -1.0f));
  EXPECT_EQ(client_->GetCounters()->unknown_lists, 0);
}

TEST_F(ParameterClientTest, SaysWhatDoesNotFitASparseTable) {
  const Table dense = MustCreate("w");
  const Table table = *client_->CreateTable(SparseSpec("rows", 2));
  RowBatch batch;
  EXPECT_TRUE(absl::IsInvalidArgument(batch.Assign(dense, std::vector<uint64_t>{1})));
  std::vector<float> rows(4);
  const auto refused = [](const Handle& handle, const std::string& why) {
    EXPECT_TRUE(absl::IsInvalidArgument(handle.Wait())) << handle.Wait();
    EXPECT_THAT(std::string(handle.Wait().message()), HasSubstr(why));
  };
  refused(client_->Pull(table, batch, std::span<float>(rows)), "assign the keys");
  ASSERT_TRUE(batch.Assign(table, std::vector<uint64_t>{1, 2, 3}).ok());
  refused(client_->Pull(table, batch, std::span<float>(rows)), "the batch 3 keys; got 0 gradient");
  refused(client_->Push(table, batch, rows), "pass a row for each");
  refused(client_->Pull(table, std::span<float>(rows)), "is sparse");
  rows.resize(6);
  Table other = table;
  other.id = dense.id;
  refused(client_->Pull(other, batch, std::span<float>(rows)), "is dense");
  // More rows than one message of a shard holds.
  std::vector<uint64_t> keys(3'000'000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  ASSERT_TRUE(batch.Assign(table, keys).ok());
  rows.resize(6'000'000);
  refused(client_->Pull(table, batch, std::span<float>(rows)), "divide the batch");
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
