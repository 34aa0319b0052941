// SPDX-License-Identifier: Apache-2.0

// Rows of several sparse tables at once.
#include <memory>
#include <string>
#include <vector>

#include "client/parameter_client.h"
#include "common/base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/table.pb.h"
#include "tests/api/cluster.h"

namespace covey::client {
namespace {

using ::testing::HasSubstr;
using Floats = std::vector<float>;

constexpr absl::Duration kPatience = absl::Seconds(20);

class ManyTablesTest : public ::testing::Test {
 protected:
  // A table, and the rows of the keys 7, 9 and again 7.
  struct Place {
    Table table;
    RowBatch batch;
    Floats rows;
  };

  Place MakePlace(const std::string& name, uint32_t width, uint64_t rows_max = 0) {
    proto::TableSpec spec;
    spec.set_name(name);
    spec.set_data_type(proto::FLOAT32);
    spec.mutable_sparse()->set_width(width);
    spec.mutable_sparse()->set_rows_max(rows_max);
    spec.mutable_learning_rate()->set_base(1);
    spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
    Place place{.table = *client_->CreateTable(spec)};
    EXPECT_TRUE(place.batch.Assign(place.table, std::vector<uint64_t>{7, 9, 7}).ok());
    place.rows.resize(3 * width);
    return place;
  }
  static RowsToPull PullOf(Place& place) {
    return {.table = place.table, .batch = place.batch, .rows = place.rows};
  }
  static RowsToPush PushOf(const Place& place, const Floats& gradient) {
    return {.table = place.table, .batch = place.batch, .gradient = gradient};
  }

  const Cluster cluster_{{}};
  const std::unique_ptr<ParameterClient> client_ = *ParameterClient::Connect(
      {.scheduler = cluster_.scheduler(), .operation_deadline = kPatience});
  Place a_ = MakePlace("a", 1);
  Place b_ = MakePlace("b", 2);
};

TEST_F(ManyTablesTest, PushesAndPullsAll) {
  const Floats to_a = {-1, -2, -4}, to_b = {-1, -2, -3, -4, -5, -6};
  const Handle push = client_->PushMany(std::vector{PushOf(a_, to_a), PushOf(b_, to_b)});
  ASSERT_TRUE(push.Wait().ok()) << push.Wait();
  EXPECT_TRUE(push.result().durable);
  EXPECT_EQ(push.result().version, Version(1));
  const Handle pull = client_->PullMany(std::vector{PullOf(a_), PullOf(b_)});
  ASSERT_TRUE(pull.Wait().ok()) << pull.Wait();
  EXPECT_EQ(a_.rows, (Floats{5, 2, 5}));
  EXPECT_EQ(b_.rows, (Floats{6, 8, 3, 4, 6, 8}));
  EXPECT_EQ(pull.result().version, Version(1));
}

TEST_F(ManyTablesTest, ATableMayComeTwiceAndNoneIsDoneAtOnce) {
  const Floats gradient = {-1, 0, 0};
  const Handle push = client_->PushMany(std::vector{PushOf(a_, gradient), PushOf(a_, gradient)});
  ASSERT_TRUE(push.Wait().ok()) << push.Wait();
  ASSERT_TRUE(client_->PullMany(std::vector{PullOf(a_)}).Wait().ok());
  EXPECT_EQ(a_.rows, (Floats{2, 0, 2}));
  const Handle none = client_->PushMany({});
  ASSERT_TRUE(none.done());
  EXPECT_TRUE(none.Wait().ok());
  EXPECT_TRUE(none.result().durable);
}

TEST_F(ManyTablesTest, StartsNothingWhenTheRowsOfOneTableDoNotFit) {
  const Floats gradient(3, -1);  // too short for b
  const Handle push = client_->PushMany(std::vector{PushOf(a_, gradient), PushOf(b_, gradient)});
  EXPECT_EQ(push.Wait().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(push.Wait().message()), HasSubstr("table 'b' has 2 columns"));
  const Handle pull = client_->PullMany(std::vector{PullOf(a_)});
  ASSERT_TRUE(pull.Wait().ok());
  EXPECT_EQ(pull.result().version, Version(0));
}

TEST_F(ManyTablesTest, AnErrorNamesItsTableAndLeavesTheOthers) {
  Place full = MakePlace("full", 1, /*rows_max=*/1);
  std::vector<uint64_t> many(100);
  for (size_t i = 0; i < many.size(); ++i) many[i] = i;
  ASSERT_TRUE(full.batch.Assign(full.table, many).ok());
  const Floats to_full(100, -1), to_a(3, -1);
  const Handle push = client_->PushMany(std::vector{PushOf(full, to_full), PushOf(a_, to_a)});
  EXPECT_EQ(push.Wait().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(push.Wait().message()), HasSubstr("table 'full'"));
  ASSERT_TRUE(client_->PullMany(std::vector{PullOf(a_)}).Wait().ok());
  EXPECT_EQ(a_.rows, (Floats{2, 1, 2}));
}

TEST_F(ManyTablesTest, OneDeadlineIsThatOfAllTables) {
  const absl::Time begin = MonotonicNow();
  const Handle pull = client_->PullMany(
      std::vector{PullOf(b_), PullOf(a_)},
      {.bound = {.min_version = Version(100)}, .deadline = absl::Milliseconds(200)});
  EXPECT_EQ(pull.Wait().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(pull.Wait().message()), HasSubstr("table 'b'"));
  EXPECT_LT(MonotonicNow() - begin, kPatience);
}

TEST_F(ManyTablesTest, AClientThatEndsEndsThem) {
  auto other = *ParameterClient::Connect({.scheduler = cluster_.scheduler()});
  const Handle pull = other->PullMany(std::vector{PullOf(a_), PullOf(b_)},
                                      {.bound = {.min_version = Version(100)}});
  other.reset();
  ASSERT_TRUE(pull.done());
  EXPECT_EQ(pull.Wait().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace covey::client
