// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/table/table_budget.h"
#include "server/testing/chain_fixture.h"
#include "server/testing/sparse_fixture.h"

// What the tables of a server may take, as its clients meet it.

namespace covey::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Code = absl::StatusCode;

constexpr Contract kAsync{.kind = Contract::Kind::kAsync};

Code CodeOf(const Message& reply) { return StatusOf(reply).code(); }
std::string TextOf(const Message& reply) { return std::string(StatusOf(reply).message()); }

ShardActor::Options Limited(std::shared_ptr<TableBudget> budget) {
  ShardActor::Options options;
  options.tables = std::move(budget);
  return options;
}

// Two shards of 16 bytes of values, and as many of momentum.
TestJob TwoShards() {
  TestJob job(kAsync, 0, /*elements=*/4, /*shards=*/2);
  job.spec().mutable_optimizer()->set_kind(proto::Optimizer::MOMENTUM);
  job.spec().mutable_optimizer()->set_momentum(0.5);
  return job;
}

TEST(TableQuota, AShardThatDoesNotFitFailsAlone) {
  ShardDriver driver(TwoShards(), Limited(std::make_shared<TableBudget>(63)));
  EXPECT_THAT(driver.Values(0), ElementsAre(0, 0, 0, 0));
  const Message refusal = driver.Ask(driver.Pull(1));
  EXPECT_EQ(CodeOf(refusal), Code::kResourceExhausted);
  EXPECT_THAT(TextOf(refusal), HasSubstr("table=weights"));
  EXPECT_THAT(TextOf(refusal),
              HasSubstr("needs 32 bytes, and the tables of this server take 32 of the 63"));
  EXPECT_EQ(refusal.envelope.status().retry_after_ms(), 1000u);
  EXPECT_EQ(CodeOf(driver.Ask(driver.ClientPush(1, {1, 1, 1, 1}))), Code::kOk);
  EXPECT_THAT(driver.Values(0), ElementsAre(-1, -1, -1, -1));
}

TEST(TableQuota, AShardThatFitsByNowIsOpened) {
  const auto budget = std::make_shared<TableBudget>(64);
  TableBudget::Share of_another_loop(budget.get());
  ASSERT_TRUE(of_another_loop.Reserve(1).ok());
  ShardDriver driver(TwoShards(), Limited(budget));
  EXPECT_EQ(CodeOf(driver.Ask(driver.Pull(0))), Code::kOk);
  EXPECT_EQ(CodeOf(driver.Ask(driver.Pull(1))), Code::kResourceExhausted);
  of_another_loop.Set(0);
  // No view tells it, so a request after a while does.
  EXPECT_EQ(CodeOf(driver.Ask(driver.Pull(1))), Code::kResourceExhausted);
  driver.Pass(ShardHost::kReopenAfter);
  EXPECT_THAT(driver.Values(1), ElementsAre(0, 0, 0, 0));
}

TEST(TableQuota, ADroppedTableGivesItsBytesBack) {
  const auto budget = std::make_shared<TableBudget>(64);
  TestJob job = TwoShards();
  ShardDriver driver(job, Limited(budget));
  EXPECT_EQ(CodeOf(driver.Ask(driver.Pull(0))), Code::kOk);
  EXPECT_EQ(CodeOf(driver.Ask(driver.Pull(1))), Code::kOk);
  TableBudget::Share of_another_loop(budget.get());
  EXPECT_FALSE(of_another_loop.Reserve(1).ok());
  job.view.clear_tables();
  job.view.set_epoch(job.view.epoch() + 1);
  driver.AdoptView(job);
  EXPECT_TRUE(of_another_loop.Reserve(64).ok());
}

TEST(TableQuota, AReplicaThatDoesNotFitIsNotFilled) {
  ChainDriver chain(kAsync, 0, 2, 1);
  const auto budget = std::make_shared<TableBudget>(15);
  chain.options = Limited(budget);
  chain.Restart(1);
  chain.PublishToAll();
  ShardDriver requests{TestJob(kAsync, 0)};
  EXPECT_EQ(CodeOf(chain.Ask(0, requests.ClientPush(1, {1, 1, 1, 1}))), Code::kOk);
  chain.SetChain({{0, false}, {1, true}});
  chain.PublishToAll();
  chain.Pass(absl::Seconds(1));
  EXPECT_EQ(chain.replica(1).content(), nullptr);
  // The head goes on without it.
  EXPECT_EQ(CodeOf(chain.Ask(0, requests.ClientPush(2, {1, 1, 1, 1}))), Code::kOk);
}

class RowQuota : public ::testing::Test {
 protected:
  static TestJob SparseJob() {
    TestJob job(kAsync, 0);
    MakeSparse(job, 2);
    return job;
  }
  Message Push(const Keys& keys) {
    return OfRows(requests_.ClientPush(++pushes_, std::vector<float>(2 * keys.size(), 1)), keys);
  }
  static const SparseShard& RowsOf(ShardDriver& driver) {
    return *driver.actor().FindReplica({TableId(kTestTable), ShardIndex(0)})->content()->sparse();
  }
  static uint64_t RowBytes() {
    ShardDriver driver(SparseJob());
    driver.Ask(driver.Pull());
    return RowsOf(driver).layout().row_bytes();
  }

  ShardDriver requests_{TestJob(kAsync, 0)};
  uint64_t pushes_ = 0;
};

TEST_F(RowQuota, APushThatWouldMakeRowsBeyondItIsRefused) {
  ShardDriver driver(SparseJob(), Limited(std::make_shared<TableBudget>(3 * RowBytes())));
  EXPECT_EQ(CodeOf(driver.Ask(Push({1, 2}))), Code::kOk);
  const Message beyond = Push({2, 3, 4});
  const Message refusal = driver.Ask(beyond);
  EXPECT_EQ(CodeOf(refusal), Code::kResourceExhausted);
  EXPECT_THAT(TextOf(refusal), HasSubstr("--table-bytes-max"));
  EXPECT_EQ(RowsOf(driver).rows(), 2u);
  EXPECT_EQ(RowsOf(driver).version(), 1u);
  // Rows that are there are updated, one more fits, and reads make none.
  EXPECT_EQ(CodeOf(driver.Ask(Push({1, 2, 3}))), Code::kOk);
  EXPECT_EQ(CodeOf(driver.Ask(Push({1, 2, 3}))), Code::kOk);
  EXPECT_EQ(CodeOf(driver.Ask(OfRows(driver.Pull(), {1, 7}))), Code::kOk);
  EXPECT_EQ(CodeOf(driver.Ask(Push({4}))), Code::kResourceExhausted);
  EXPECT_EQ(RowsOf(driver).rows(), 3u);
}

TEST_F(RowQuota, ATableWhoseRowsMakeRoomGoesOn) {
  TestJob job = SparseJob();
  proto::SparseRows& rows = *job.spec().mutable_sparse();
  rows.set_rows_max(10);
  rows.set_when_full(proto::SparseRows::EVICT);
  ShardDriver driver(job, Limited(std::make_shared<TableBudget>(10 * RowBytes())));
  for (uint64_t key = 1; key <= 30; ++key) {
    ASSERT_EQ(CodeOf(driver.Ask(Push({key}))), Code::kOk) << key;
  }
  EXPECT_LE(RowsOf(driver).rows(), 10u);
}

}  // namespace
}  // namespace covey::server
