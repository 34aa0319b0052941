// SPDX-License-Identifier: Apache-2.0
#include "client/row_reader.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/row_batch.h"
#include "common/base/clock.h"
#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/table.pb.h"
#include "tests/api/cluster.h"

namespace covey::client {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Keys = std::vector<uint64_t>;
using Floats = std::vector<float>;
using Rows = std::map<uint64_t, Floats>;  // by key

class RowReaderTest : public ::testing::Test {
 protected:
  static std::unique_ptr<ParameterClient> Connect(const Cluster& cluster) {
    ClientConfig config;
    config.scheduler = cluster.scheduler();
    config.operation_deadline = absl::Seconds(20);
    return *ParameterClient::Connect(config);
  }
  Table Create(uint32_t width, uint64_t rows_max = 0) {
    proto::TableSpec spec;
    spec.set_name("rows");
    spec.set_data_type(proto::FLOAT32);
    spec.mutable_sparse()->set_width(width);
    spec.mutable_sparse()->set_rows_max(rows_max);
    if (rows_max > 0) spec.mutable_sparse()->set_when_full(proto::SparseRows::EVICT);
    spec.mutable_learning_rate()->set_base(1);
    spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
    return *client_->CreateTable(spec);
  }
  // Adds 1 to each row.
  void Push(const Table& table, const Keys& keys) {
    RowBatch batch;
    ASSERT_TRUE(batch.Assign(table, keys).ok());
    const absl::Status pushed =
        client_->Push(table, batch, Floats(keys.size() * table.width, -1.0f)).Wait();
    ASSERT_TRUE(pushed.ok()) << pushed;
  }
  // Reads on from the token, or all where it has none, into `rows`.
  absl::StatusOr<ResumeToken> Read(const Table& table, const std::optional<ResumeToken>& since,
                                   Rows& rows) {
    const auto reader = RowReader::Create(*client_, table, {.since = since});
    if (!reader.ok()) return reader.status();
    uint64_t next = 0;
    pieces_ = 0;
    read_ = 0;
    while (true) {
      const absl::StatusOr<std::optional<RowReader::Piece>> piece = (*reader)->Next();
      if (!piece.ok()) return piece.status();
      if (!*piece) return (*reader)->token();
      ++pieces_;
      read_ += (*piece)->keys.size();
      for (const uint64_t key : (*piece)->removed) rows.erase(key);
      for (size_t i = 0; i < (*piece)->keys.size(); ++i) {
        const uint64_t key = (*piece)->keys[i];
        EXPECT_GE(MixBits(key), next);
        next = MixBits(key) + 1;
        const auto row = (*piece)->rows.subspan(i * table.width, table.width);
        rows[key] = Floats(row.begin(), row.end());
      }
    }
  }

  const Cluster cluster_{{}};
  const std::unique_ptr<ParameterClient> client_ = Connect(cluster_);
  size_t pieces_ = 0;
  size_t read_ = 0;
};

TEST_F(RowReaderTest, ReadsATableAndThenWhatChanges) {
  const Table table = Create(16);
  Rows rows;
  std::optional<ResumeToken> token = *Read(table, std::nullopt, rows);
  EXPECT_THAT(rows, IsEmpty());
  Random random(1);
  Keys keys(50'000);
  for (uint64_t& key : keys) key = random.Next();
  Push(table, keys);
  token = *Read(table, token, rows);
  EXPECT_EQ(rows.size(), 50'000);
  EXPECT_GT(pieces_, 3);
  Push(table, {keys[0], keys[7], 3});
  token = *Read(table, token, rows);
  EXPECT_EQ(read_, 3);
  EXPECT_EQ(rows.size(), 50'001);
  EXPECT_EQ(rows[keys[7]], Floats(16, 2.0f));
  EXPECT_EQ(rows[3], Floats(16, 1.0f));
  EXPECT_EQ(rows[keys[8]], Floats(16, 1.0f));
  token = *Read(table, ResumeToken::Parse(token->ToText()).value(), rows);
  EXPECT_EQ(read_, 0);
  Rows all;
  ASSERT_TRUE(Read(table, std::nullopt, all).ok());
  EXPECT_EQ(rows, all);
}

TEST_F(RowReaderTest, LearnsWhichRowsWent) {
  const Table table = Create(1, /*rows_max=*/1000);
  Rows rows;
  std::optional<ResumeToken> token = *Read(table, std::nullopt, rows);
  Random random(2);
  for (int i = 0; i < 100; ++i) {
    Keys keys(50);
    for (uint64_t& key : keys) key = random.Below(3000);
    Push(table, keys);
    if (i % 10 != 0) continue;
    token = *Read(table, token, rows);
    Rows all;
    ASSERT_TRUE(Read(table, std::nullopt, all).ok());
    ASSERT_EQ(rows, all) << i;
  }
  EXPECT_GT(rows.size(), 500);
  // Too many go for the servers to remember.
  Keys others(900);
  for (int i = 0; i < 10; ++i) {
    for (uint64_t& key : others) key = random.Next();
    Push(table, others);
  }
  const absl::Status behind = Read(table, token, rows).status();
  EXPECT_TRUE(absl::IsOutOfRange(behind)) << behind;
  EXPECT_THAT(std::string(behind.message()), HasSubstr("read all rows again"));
}

TEST_F(RowReaderTest, SaysWhatDoesNotFit) {
  const Table table = Create(1);
  Rows rows;
  const ResumeToken token = *Read(table, std::nullopt, rows);
  const auto why = [&](const ResumeToken& since) {
    const absl::Status status = Read(table, since, rows).status();
    EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
    return std::string(status.message());
  };
  ResumeToken other = token;
  other.run += 1;
  EXPECT_THAT(why(other), HasSubstr("is of another run of the job; read all rows again"));
  other = token;
  other.table = TableId(99);
  EXPECT_THAT(why(other), HasSubstr("is of another table"));
  other = token;
  other.shards.emplace_back();
  EXPECT_THAT(why(other), HasSubstr("is of a table with other shards"));
  other = token;
  other.shards[0].generation += 1;
  EXPECT_THAT(why(other), HasSubstr("was lost and made again"));
  other = token;
  other.shards[0].version = Version(5);
  EXPECT_THAT(why(other), HasSubstr("is of another history"));

  proto::TableSpec dense;
  dense.set_name("dense");
  dense.set_data_type(proto::FLOAT32);
  dense.add_shape(4);
  dense.mutable_learning_rate()->set_base(1);
  dense.mutable_contract()->set_kind(proto::Contract::ASYNC);
  EXPECT_THAT(
      std::string(RowReader::Create(*client_, *client_->CreateTable(dense), {}).status().message()),
      HasSubstr("'dense' is dense"));
  // A reader may go while it reads.
  { const auto reader = *RowReader::Create(*client_, table, {}); }
  ASSERT_TRUE(client_->DropTable("rows").ok());
  // The servers learn of it within milliseconds, and serve the table until then.
  const absl::Time deadline = MonotonicNow() + absl::Seconds(20);
  absl::Status dropped = Read(table, std::nullopt, rows).status();
  while (dropped.ok() && MonotonicNow() < deadline) {
    dropped = Read(table, std::nullopt, rows).status();
  }
  EXPECT_TRUE(absl::IsNotFound(dropped)) << dropped;
}

}  // namespace
}  // namespace covey::client
