// SPDX-License-Identifier: Apache-2.0

// `covey export-rows` of a running cluster, as its command calls it.

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/console/text_file.h"
#include "client/cli/rows/rows_export.h"
#include "client/parameter_client.h"
#include "client/row_batch.h"
#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/table.pb.h"
#include "tests/api/cluster.h"

namespace covey::cli {
namespace {

using ::testing::HasSubstr;
using Keys = std::vector<uint64_t>;
using Rows = std::map<uint64_t, std::vector<float>>;

class ExportRowsTest : public ::testing::Test {
 protected:
  ExportRowsTest() {
    proto::TableSpec spec;
    spec.set_name("items");
    spec.set_data_type(proto::FLOAT32);
    spec.mutable_sparse()->set_width(2);
    spec.mutable_sparse()->set_rows_max(20'000);
    spec.mutable_sparse()->set_when_full(proto::SparseRows::EVICT);
    spec.mutable_learning_rate()->set_base(1);
    spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
    table_ = *client_->CreateTable(spec);
  }
  // Adds (number, 1) to the row of each key.
  void Push(uint64_t first, uint64_t last) {
    Keys keys;
    std::vector<float> gradient;
    for (uint64_t i = first; i <= last; ++i) {
      keys.push_back(UnmixBits(MixBits(i) * 3));
      gradient.insert(gradient.end(), {-static_cast<float>(i), -1});
    }
    client::RowBatch batch;
    ASSERT_TRUE(batch.Assign(table_, keys).ok());
    ASSERT_TRUE(client_->Push(table_, batch, gradient).Wait().ok());
  }
  std::string Path(const std::string& name) const { return folder_->path() + "/" + name; }
  absl::StatusOr<ExportedRows> Export(const std::string& out, const std::string& since = "",
                                      size_t memory = 100'000) {
    return ExportRows({.table = "items",
                       .out = Path(out),
                       .scheduler = cluster_.scheduler(),
                       .changed_since = since.empty() ? "" : Path(since),
                       .memory_bytes = memory},
                      [](absl::string_view) {});
  }
  // The elements behind the head of an NPY file, which says this of them.
  template <typename T>
  std::vector<T> Npy(const std::string& path, const std::string& type) {
    const std::string text = *ReadTextFile(Path(path));
    const size_t begin = 10 + static_cast<uint8_t>(text[8]) + 256 * static_cast<uint8_t>(text[9]);
    EXPECT_THAT(text.substr(10, begin), HasSubstr("'descr': '" + type + "'"));
    std::vector<T> elements((text.size() - begin) / sizeof(T));
    std::memcpy(elements.data(), text.data() + begin, elements.size() * sizeof(T));
    return elements;
  }
  Rows RowsIn(const std::string& folder) {
    const Keys keys = Npy<uint64_t>(folder + "/keys.npy", "<u8");
    const std::vector<float> values = Npy<float>(folder + "/values.npy", "<f4");
    EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
    EXPECT_EQ(values.size(), keys.size() * 2);
    Rows rows;
    for (size_t i = 0; i < keys.size(); ++i) rows[keys[i]] = {values[2 * i], values[2 * i + 1]};
    EXPECT_EQ(rows.size(), keys.size());
    return rows;
  }
  size_t Entries() const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_->path())) {
      count += entry.exists();
    }
    return count;
  }

  const Cluster cluster_{{}};
  const std::unique_ptr<client::ParameterClient> client_ =
      *client::ParameterClient::Connect({.scheduler = cluster_.scheduler()});
  client::Table table_;
  const std::unique_ptr<TemporaryFolder> folder_ = *TemporaryFolder::Make();
};

TEST_F(ExportRowsTest, WritesATableAndThenItsChanges) {
  Push(1, 10'000);
  const ExportedRows first = *Export("first");
  EXPECT_EQ(first.rows, 10'000);
  Rows rows = RowsIn("first");
  for (const auto& [key, row] : rows) EXPECT_EQ(row[1], 1);
  EXPECT_EQ(rows[UnmixBits(MixBits(7) * 3)][0], 7);
  // Nothing has changed; then some rows have, and others go.
  EXPECT_EQ(Export("none", "first")->rows, 0);
  Push(9'001, 11'000);
  const ExportedRows second = *Export("second", "first");
  EXPECT_EQ(second.rows, 2000);
  EXPECT_EQ(second.removed, 0);
  for (const auto& [key, row] : RowsIn("second")) rows[key] = row;
  for (uint64_t begin = 11'001; begin < 22'000; begin += 1000) Push(begin, begin + 999);
  const ExportedRows third = *Export("third", "second/manifest.json");
  EXPECT_GT(third.removed, 500);
  const Keys removed = Npy<uint64_t>("third/removed.npy", "<u8");
  EXPECT_EQ(removed.size(), third.removed);
  EXPECT_TRUE(std::is_sorted(removed.begin(), removed.end()));
  for (const uint64_t key : removed) rows.erase(key);
  for (const auto& [key, row] : RowsIn("third")) rows[key] = row;
  // All in memory at once, this time.
  ASSERT_TRUE(Export("full", "", size_t{256} << 20).ok());
  EXPECT_EQ(RowsIn("full"), rows);
}

TEST_F(ExportRowsTest, FailsByNameAndLeavesNothing) {
  Push(1, 10);
  ASSERT_TRUE(Export("first").ok());
  const auto why = [&](const absl::StatusOr<ExportedRows>& exported) {
    EXPECT_EQ(Entries(), 1);
    return std::string(exported.status().message());
  };
  EXPECT_THAT(why(Export("first")), HasSubstr("exists already"));
  EXPECT_THAT(why(Export("x", "first/keys.npy")), HasSubstr("is no manifest of exported rows"));
  EXPECT_THAT(why(Export("x", "nothing")), HasSubstr("nothing"));
  for (uint64_t begin = 0; begin < 100'000; begin += 5000) Push(begin, begin + 4999);
  const absl::StatusOr<ExportedRows> late = Export("x", "first");
  EXPECT_TRUE(absl::IsOutOfRange(late.status()));
  EXPECT_THAT(why(late), HasSubstr("read all rows again"));
  ASSERT_TRUE(client_->DropTable("items").ok());
  EXPECT_THAT(why(Export("x")), HasSubstr("no table 'items'"));
}

// NumPy has a type for float16, and none for bfloat16.
TEST_F(ExportRowsTest, RowsOfTwoBytesHaveTheNearestTypeOfNumpy) {
  for (const auto& [type, name] :
       {std::pair(proto::BFLOAT16, "bfloat16"), std::pair(proto::FLOAT16, "float16")}) {
    proto::TableSpec spec;
    spec.set_name(name);
    spec.set_data_type(type);
    spec.mutable_sparse()->set_width(1);
    spec.mutable_learning_rate()->set_base(1);
    spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
    const client::Table table = *client_->CreateTable(spec);
    client::RowBatch batch;
    ASSERT_TRUE(batch.Assign(table, Keys{5, 6}).ok());
    ASSERT_TRUE(client_->Push(table, batch, std::vector<float>{-1, 2.5f}).Wait().ok());
    ASSERT_TRUE(ExportRows({.table = name,
                            .out = Path(name),
                            .scheduler = cluster_.scheduler(),
                            .memory_bytes = 100'000},
                           [](absl::string_view) {})
                    .ok());
  }
  EXPECT_EQ(Npy<float>("bfloat16/values.npy", "<f4"), (std::vector<float>{1, -2.5f}));
  EXPECT_EQ(Npy<uint16_t>("float16/values.npy", "<f2"), (std::vector<uint16_t>{0x3c00, 0xc100}));
}

TEST(RowsExportOptionsTest, NamesTheFlag) {
  const auto why = [](const RowsExportOptions& options) {
    return std::string(options.Validate().message());
  };
  EXPECT_THAT(why({}), HasSubstr("no table is named"));
  EXPECT_THAT(why({.table = "t"}), HasSubstr("pass --out"));
  EXPECT_THAT(why({.table = "t", .out = "o", .snapshot = "latest"}), HasSubstr("pass --store"));
  EXPECT_THAT(
      why({.table = "t", .out = "o", .snapshot = "latest", .store = "s", .changed_since = "c"}),
      HasSubstr("leave out --snapshot"));
  EXPECT_EQ(why({.table = "t", .out = "o", .changed_since = "c"}), "");
}

}  // namespace
}  // namespace covey::cli
