// SPDX-License-Identifier: Apache-2.0
#include "client/row_cache.h"

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

class RowCacheTest : public ::testing::Test {
 protected:
  std::unique_ptr<ParameterClient> Connect() const {
    ClientConfig config;
    config.scheduler = cluster_.scheduler();
    config.operation_deadline = absl::Seconds(20);
    return *ParameterClient::Connect(config);
  }
  static proto::TableSpec Spec() {
    proto::TableSpec spec;
    spec.set_name("rows");
    spec.set_data_type(proto::FLOAT32);
    spec.mutable_sparse()->set_width(1);
    spec.mutable_learning_rate()->set_base(1);
    spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
    return spec;
  }
  std::unique_ptr<RowCache> Cache(const RowCache::Options& options) {
    return *RowCache::Create(*reader_, table_, options);
  }
  // Another program takes 1 from the rows of these keys.
  void Push(const Keys& keys) {
    const Table table = *writer_->FindTable("rows");
    RowBatch batch;
    ASSERT_TRUE(batch.Assign(table, keys).ok());
    const absl::Status pushed = writer_->Push(table, batch, Floats(keys.size(), 1.0f)).Wait();
    ASSERT_TRUE(pushed.ok()) << pushed;
    ASSERT_TRUE(writer_->Flush(absl::Seconds(20)).ok());
  }
  static Floats Rows(RowCache& cache, const Keys& keys) {
    Floats rows(keys.size());
    const absl::Status status = cache.Pull(keys, rows).Wait();
    EXPECT_TRUE(status.ok()) << status;
    return rows;
  }

  const Cluster cluster_{{}};
  const std::unique_ptr<ParameterClient> reader_ = Connect();
  const std::unique_ptr<ParameterClient> writer_ = Connect();
  const Table table_ = *reader_->CreateTable(Spec());
};

TEST_F(RowCacheTest, AnswersFromWhatItHasRead) {
  Push({1, 2});
  const auto cache = Cache({.max_age = absl::Hours(1)});
  EXPECT_EQ(Rows(*cache, {2, 3, 2}), (Floats{-1, 0, -1}));
  Push({1, 2, 3});
  EXPECT_EQ(Rows(*cache, {1, 2, 3, 1}), (Floats{-2, -1, 0, -2}));
  cache->Invalidate(Keys{3, 4});
  EXPECT_EQ(Rows(*cache, {1, 2, 3}), (Floats{-2, -1, -1}));
  EXPECT_EQ(Rows(*cache, {}), Floats());
  EXPECT_EQ(cache->counts().hits, 4);
  EXPECT_EQ(cache->counts().misses, 6);
  EXPECT_EQ(cache->counts().stale, 0);
  EXPECT_EQ(cache->counts().rows, 3);
}

TEST_F(RowCacheTest, APullInProgressKeepsNoInvalidatedRow) {
  const auto cache = Cache({.max_age = absl::Hours(1)});
  Floats rows(2);
  const Handle pull = cache->Pull(Keys{1, 2}, rows);
  cache->Invalidate(Keys{1});  // while the pull is on its way, as a rule
  ASSERT_TRUE(pull.Wait().ok());
  Push({1, 2});
  EXPECT_TRUE(pull.result().durable);
  EXPECT_EQ(Rows(*cache, {1, 2}), (Floats{-1, rows[1]}));
  EXPECT_EQ(cache->counts().hits, 1);
  EXPECT_TRUE(cache->Pull(Keys{2}, std::span(rows).first(1)).result().durable);
}

TEST_F(RowCacheTest, ReadsAgainAfterSoManyUpdates) {
  const auto cache = Cache({.max_age = absl::Hours(1), .max_updates = 2});
  EXPECT_EQ(Rows(*cache, {1}), Floats{0});
  for (int update = 0; update < 3; ++update) Push({1});
  EXPECT_EQ(Rows(*cache, {1}), Floats{0});  // it cannot know
  // The keys below lie in all shards.
  Keys others(50);
  for (size_t i = 0; i < others.size(); ++i) others[i] = 100 + i;
  Rows(*cache, others);
  EXPECT_EQ(Rows(*cache, {1}), Floats{-3});
  EXPECT_EQ(cache->counts().stale, 1);
}

TEST_F(RowCacheTest, ReadsAgainAfterItsTime) {
  const auto cache = Cache({.max_age = absl::Nanoseconds(1)});
  EXPECT_EQ(Rows(*cache, {1}), Floats{0});
  Push({1});
  EXPECT_EQ(Rows(*cache, {1}), Floats{-1});
  EXPECT_EQ(cache->counts().stale, 1);
}

TEST_F(RowCacheTest, SaysWhatDoesNotFit) {
  proto::TableSpec spec = Spec();
  spec.set_name("dense");
  spec.clear_sparse();
  spec.add_shape(4);
  const auto why = [&](const Table& table, const RowCache::Options& options) {
    return std::string(RowCache::Create(*reader_, table, options).status().message());
  };
  EXPECT_THAT(why(*reader_->CreateTable(spec), {}), HasSubstr("'dense' is dense"));
  EXPECT_THAT(why(table_, {.rows_max = 0}),
              HasSubstr("a cache of 0 rows of table 'rows'; keep 1 to 4294967295"));
  EXPECT_THAT(why(table_, {.max_age = absl::ZeroDuration()}), HasSubstr("allow more than zero"));
  Floats rows(3);
  EXPECT_THAT(std::string(Cache({})->Pull(Keys{1, 2}, rows).Wait().message()),
              HasSubstr("got 2 keys and 3 row elements"));
  ASSERT_TRUE(writer_->DropTable("rows").ok());
  EXPECT_TRUE(absl::IsNotFound(Cache({})->Pull(Keys{1, 2, 3}, rows).Wait()));
}

}  // namespace
}  // namespace covey::client
