// SPDX-License-Identifier: Apache-2.0
#include "client/row_filter.h"

#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/table.pb.h"
#include "tests/api/cluster.h"

namespace covey::client {
namespace {

using ::testing::HasSubstr;
using Keys = std::vector<uint64_t>;
using Floats = std::vector<float>;

constexpr FilterRule kBelowOne = {.kind = FilterRule::Kind::kKkt, .threshold = 1};

class RowFilterTest : public ::testing::Test {
 protected:
  std::unique_ptr<ParameterClient> Connect() const {
    ClientConfig config;
    config.scheduler = cluster_.scheduler();
    config.operation_deadline = absl::Seconds(20);
    return *ParameterClient::Connect(config);
  }
  // FTRL with l1 = 1, or SGD with the rate 1.
  Table Rows(absl::string_view name, proto::Optimizer::Kind optimizer, uint32_t width = 1) {
    proto::TableSpec spec;
    spec.set_name(std::string(name));
    spec.set_data_type(proto::FLOAT32);
    spec.mutable_sparse()->set_width(width);
    spec.mutable_optimizer()->set_kind(optimizer);
    if (optimizer == proto::Optimizer::FTRL) spec.mutable_optimizer()->set_l1(1);
    spec.mutable_learning_rate()->set_base(1);
    spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
    return *client_->CreateTable(spec);
  }
  static RowBatch Batch(const Table& table, const Keys& keys) {
    RowBatch batch;
    EXPECT_TRUE(batch.Assign(table, keys).ok());
    return batch;
  }
  Floats Pull(const Table& table, const Keys& keys) {
    Floats rows(keys.size());
    const absl::Status status = client_->Pull(table, Batch(table, keys), std::span(rows)).Wait();
    EXPECT_TRUE(status.ok()) << status;
    return rows;
  }
  // Pulls and pushes, as training does.
  absl::Status Push(RowFilter& filter, const Table& table, const Keys& keys,
                    const Floats& gradients, uint64_t samples = 1) {
    const Floats rows = Pull(table, keys);
    return filter.Push(Batch(table, keys), rows, gradients, {.samples = samples}).Wait();
  }

  const Cluster cluster_{{}};
  const std::unique_ptr<ParameterClient> client_ = Connect();
};

TEST_F(RowFilterTest, FtrlHasTheBitsOfEveryGradientPushed) {
  const Table filtered = Rows("filtered", proto::Optimizer::FTRL);
  const Table plain = Rows("plain", proto::Optimizer::FTRL);
  const auto filter = *RowFilter::Create(*client_, filtered, {.rule = kBelowOne});
  const auto push = [&](const Keys& keys, const Floats& gradients) {
    ASSERT_TRUE(Push(*filter, filtered, keys, gradients).ok());
    ASSERT_TRUE(client_->Push(plain, Batch(plain, keys), gradients).Wait().ok());
  };
  // Of key 1 two gradients wait for the third, and of key 3 one; of key 2 none does.
  for (int i = 0; i < 3; ++i) push({2, 1}, {-1.5f, 0.375f});
  for (int i = 0; i < 2; ++i) push({2}, {0.25f});
  push({3}, {-0.375f});
  EXPECT_EQ(filter->counts().held_back, 3);
  EXPECT_EQ(filter->counts().pushed, 6);
  EXPECT_EQ(filter->counts().pushed_later, 2);
  EXPECT_EQ(filter->counts().held, 1);
  ASSERT_TRUE(filter->Flush().ok());
  EXPECT_EQ(filter->counts().pushed_later, 3);
  EXPECT_EQ(filter->counts().held, 0);
  // The weight of key 3 shows what has arrived.
  push({3}, {-1.5f});
  const Floats expected = Pull(plain, {1, 2, 3});
  EXPECT_LT(expected[0], 0);
  EXPECT_GT(expected[2], 0);
  EXPECT_EQ(Pull(filtered, {1, 2, 3}), expected);
}

TEST_F(RowFilterTest, RepeatedKeysAndSamplesCountAsInAPush) {
  const Table table = Rows("rows", proto::Optimizer::SGD);
  const auto filter = *RowFilter::Create(*client_, table, {.rule = kBelowOne, .pieces_max = 1});
  // Means of 0.5 and 0.75, which wait, and of 2.
  const Keys keys = {7, 8, 7, 9};
  ASSERT_TRUE(Push(*filter, table, keys, {1, 3, 1, 8}, 4).ok());
  EXPECT_EQ(Pull(table, {7, 8, 9}), (Floats{0, 0, -2}));
  // A push of which all rows wait counts its samples, too.
  ASSERT_TRUE(Push(*filter, table, {8}, {0.125f}).ok());
  Floats row(1);
  const Handle pull = client_->Pull(table, Batch(table, {1}), std::span(row));
  ASSERT_TRUE(pull.Wait().ok());
  EXPECT_EQ(pull.result().version, Version(2));
  ASSERT_TRUE(filter->Flush().ok());
  EXPECT_EQ(Pull(table, {7, 8, 9}), (Floats{-0.5f, -0.875f, -2}));
  EXPECT_EQ(filter->counts().zero_held_back, 3);
  EXPECT_EQ(filter->counts().zero_pushed, 1);
}

TEST_F(RowFilterTest, AFlushOfManyRowsIsDivided) {
  constexpr size_t kWidth = 1024, kKeys = 1500;
  const Table table = Rows("rows", proto::Optimizer::SGD, kWidth);
  const auto filter = *RowFilter::Create(*client_, table, {.rule = kBelowOne});
  Keys keys(kKeys);
  std::iota(keys.begin(), keys.end(), 0);
  const RowBatch batch = Batch(table, keys);
  const Floats zeros(kKeys * kWidth), gradients(kKeys * kWidth, 0.5f);
  ASSERT_TRUE(filter->Push(batch, zeros, gradients).Wait().ok());
  EXPECT_EQ(filter->counts().held, kKeys);
  ASSERT_TRUE(filter->Flush().ok());
  Floats rows(kKeys * kWidth);
  const Handle pull = client_->Pull(table, batch, std::span(rows));
  ASSERT_TRUE(pull.Wait().ok());
  EXPECT_EQ(pull.result().version, Version(3));
  EXPECT_EQ(rows, Floats(kKeys * kWidth, -0.5f));
}

TEST_F(RowFilterTest, WhatDoesNotFitChangesNothing) {
  const Table table = Rows("rows", proto::Optimizer::SGD);
  const auto filter = *RowFilter::Create(*client_, table, {.rule = kBelowOne});
  const auto refusal = [&](const Floats& rows, const Floats& gradients, uint64_t samples) {
    const Handle push = filter->Push(Batch(table, {1, 2}), rows, gradients, {.samples = samples});
    EXPECT_EQ(push.Wait().code(), absl::StatusCode::kInvalidArgument);
    return std::string(push.Wait().message());
  };
  EXPECT_THAT(refusal({0}, {1, 1}, 1),
              HasSubstr("the batch 2 keys; got 2 gradient and 1 row elements"));
  EXPECT_THAT(refusal({0, 0}, {1}, 1), HasSubstr("got 1 gradient and 2 row elements"));
  EXPECT_THAT(refusal({0, 0}, {1, 1}, 0), HasSubstr("at least 1 sample"));
  EXPECT_THAT(refusal({0, 0}, {0.5f, std::numeric_limits<float>::infinity()}, 1),
              HasSubstr("column 0 of the gradient of key 2 is inf"));
  EXPECT_EQ(filter->counts().held, 0);
}

TEST_F(RowFilterTest, SaysWhichOptionIsOutOfItsRange) {
  const Table table = Rows("rows", proto::Optimizer::SGD);
  const auto why = [&](const Table& of, const RowFilter::Options& options) {
    return std::string(RowFilter::Create(*client_, of, options).status().message());
  };
  EXPECT_THAT(why(Table{.name = "dense", .elements = 4}, {}), HasSubstr("'dense': it is dense"));
  EXPECT_THAT(why(table, {.rule = {.threshold = -1}}),
              HasSubstr("'rows': a threshold of -1; use 0 or more"));
  EXPECT_THAT(why(table, {.rule = {.threshold = std::numeric_limits<double>::quiet_NaN()}}),
              HasSubstr("a threshold of nan"));
  EXPECT_THAT(why(table, {.rows_max = 0}), HasSubstr("0 rows held back; hold 1 to 4294967294"));
  EXPECT_THAT(why(table, {.pieces_max = 17}), HasSubstr("residuals in 17 pieces; use 1 to 16"));
}

}  // namespace
}  // namespace covey::client
