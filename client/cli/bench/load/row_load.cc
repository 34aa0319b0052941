// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/load/row_load.h"

#include <array>
#include <span>
#include <utility>

#include "absl/random/zipf_distribution.h"
#include "absl/strings/str_cat.h"
#include "client/cli/bench/load/operation_turn.h"
#include "client/row_batch.h"
#include "client/row_cache.h"
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "proto/table.pb.h"

namespace covey::cli {
namespace {

using client::Handle;
using client::ParameterClient;
using client::RowBatch;
using client::RowCache;
using client::Table;

constexpr uint64_t kRows = 1'000'000;
constexpr uint32_t kWidth = 16;
constexpr size_t kBatchKeys = 10'000;
constexpr size_t kBatches = 16;  // of each lane, in turns
constexpr int kOutstanding = 4;
// So that a rate in GB/s counts million rows.
constexpr uint64_t kBytesPerRow = 1'000;
// Keys that are far from equally frequent, as those of words and users: the tenth of the rows that
// comes most often is 88 % of what is read. So many batches that they hardly repeat in a turn.
constexpr double kZipfExponent = 1.05;
constexpr size_t kZipfBatches = 256;
// Frequent keys lie anywhere among the others.
constexpr uint64_t kSpread = 387'420'489;
constexpr client::RowCache::Options kCache = {.rows_max = kRows / 10, .max_age = absl::Seconds(1)};

proto::TableSpec Spec(const Block& block, uint32_t replicas) {
  proto::TableSpec spec = SpecOf(block, absl::StrCat(replicas), replicas);
  spec.mutable_sparse()->set_width(kWidth);
  return spec;
}

// For distributions of Abseil.
struct RandomBits {
  using result_type = uint64_t;
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }
  uint64_t operator()() { return random.Next(); }

  Random& random;
};

// The table, and the keys and memory of all lanes.
class RowsUnderLoad {
 public:
  RowsUnderLoad(ParameterClient& owner, Table table) : owner_(owner), table_(std::move(table)) {
    Random random(1);
    for (Lane& lane : lanes_) {
      lane.gradient.assign(kBatchKeys * kWidth, 0.5f);
      lane.rows.resize(kBatchKeys * kWidth);
      for (std::vector<uint64_t>& keys : lane.keys) {
        for (size_t i = 0; i < kBatchKeys; ++i) keys.push_back(random.Below(kRows));
      }
    }
    absl::zipf_distribution<uint64_t> rank(kRows - 1, kZipfExponent, 1);
    RandomBits bits{random};
    for (ZipfLane& lane : zipf_lanes_) {
      lane.rows.resize(kBatchKeys * kWidth);
      lane.keys.resize(kZipfBatches);
      for (std::vector<uint64_t>& keys : lane.keys) {
        for (size_t i = 0; i < kBatchKeys; ++i) keys.push_back(rank(bits) * kSpread % kRows);
      }
    }
  }
  ~RowsUnderLoad() {
    const absl::Status dropped = owner_.DropTable(table_.name);
    if (!dropped.ok()) LogWarning("drop_table", {{"why", dropped.message()}});
  }

  // Makes all rows, and a batch of each lane's keys.
  absl::Status Fill() {
    COVEY_ASSIGN_OR_RETURN(cache_, RowCache::Create(owner_, table_, kCache));
    constexpr uint64_t kStep = 100'000;
    const std::vector<float> zeros(kStep * kWidth);
    std::vector<uint64_t> keys(kStep);
    RowBatch batch;
    for (uint64_t first = 0; first < kRows; first += kStep) {
      for (uint64_t i = 0; i < kStep; ++i) keys[i] = first + i;
      COVEY_RETURN_IF_ERROR(batch.Assign(table_, keys));
      COVEY_RETURN_IF_ERROR(owner_.Push(table_, batch, zeros).Wait());
    }
    for (Lane& lane : lanes_) {
      for (size_t i = 0; i < kBatches; ++i) {
        COVEY_RETURN_IF_ERROR(lane.batches[i].Assign(table_, lane.keys[i]));
      }
    }
    return absl::OkStatus();
  }

  Handle Pull(int number) {
    Lane& lane = lanes_[number];
    const RowBatch& batch = lane.NextSorted(table_);
    return owner_.Pull(table_, batch, std::span<float>(lane.rows));
  }
  Handle Push(int number) {
    Lane& lane = lanes_[number];
    return owner_.Push(table_, lane.batches[lane.next++ % kBatches], lane.gradient);
  }
  // A pull of a batch, and after it the push of its gradients.
  Handle PullOrPush(int number) {
    Lane& lane = lanes_[number];
    lane.pushes_next = !lane.pushes_next;
    if (lane.pushes_next) {
      return owner_.Pull(table_, lane.NextSorted(table_), std::span<float>(lane.rows));
    }
    return owner_.Push(table_, lane.batches[(lane.next - 1) % kBatches], lane.gradient);
  }
  // The lane's first batch again and again.
  Handle PullSame(int number) {
    Lane& lane = lanes_[number];
    return owner_.Pull(table_, lane.batches[0], std::span<float>(lane.rows));
  }
  Handle PullZipf(int number) {
    ZipfLane& lane = zipf_lanes_[number];
    const absl::Status assigned = lane.batch.Assign(table_, lane.Next());
    COVEY_CHECK(assigned.ok());
    return owner_.Pull(table_, lane.batch, std::span<float>(lane.rows));
  }
  Handle PullCached(int number) {
    ZipfLane& lane = zipf_lanes_[number];
    return cache_->Pull(lane.Next(), std::span<float>(lane.rows));
  }
  Handle PushPull(int number) {
    Lane& lane = lanes_[number];
    const RowBatch& batch = lane.NextSorted(table_);
    return owner_.PushPull(table_, batch, lane.gradient, std::span<float>(lane.rows));
  }

 private:
  struct Lane {
    std::array<std::vector<uint64_t>, kBatches> keys;
    std::array<RowBatch, kBatches> batches;
    std::vector<float> gradient;
    std::vector<float> rows;
    size_t next = 0;
    bool pushes_next = false;

    // The next batch of the lane, whose keys are sorted and divided among the shards again.
    const RowBatch& NextSorted(const Table& table) {
      const size_t i = next++ % kBatches;
      const absl::Status assigned = batches[i].Assign(table, keys[i]);
      COVEY_CHECK(assigned.ok());
      return batches[i];
    }
  };

  struct ZipfLane {
    std::vector<std::vector<uint64_t>> keys;
    RowBatch batch;
    std::vector<float> rows;
    size_t next = 0;

    const std::vector<uint64_t>& Next() { return keys[next++ % kZipfBatches]; }
  };

  ParameterClient& owner_;
  const Table table_;
  std::array<Lane, kOutstanding> lanes_;
  std::array<ZipfLane, kOutstanding> zipf_lanes_;
  std::unique_ptr<RowCache> cache_;
};

}  // namespace

absl::StatusOr<std::vector<Contender>> MakeRowLoad(
    const std::vector<std::unique_ptr<ParameterClient>>& clients, const Block& block,
    const TableLoadOptions& options) {
  ParameterClient& owner = *clients[0];
  COVEY_ASSIGN_OR_RETURN(Table table, owner.CreateTable(Spec(block, options.replicas)));
  const auto load = std::make_shared<RowsUnderLoad>(owner, std::move(table));
  COVEY_RETURN_IF_ERROR(load->Fill());
  const OperationTurn turn{.bytes = kBatchKeys * kBytesPerRow,
                           .outstanding = kOutstanding,
                           .duration = options.duration,
                           .round_trips = options.round_trips};
  std::vector<Contender> contenders;
  const auto add = [&](const char* operation, Start start) {
    contenders.push_back(
        {.rows = {{.what = absl::StrCat("covey ", operation, LabelOf(block, options.replicas)),
                   .transport = options.transport,
                   .bytes = kBatchKeys * kWidth * sizeof(float),
                   .unit = "M rows/s"}},
         .measure = [start = std::move(start), turn] { return RateOfAll({start}, turn); },
         .has_cost = true});
  };
  add("pull", [load](int lane) { return load->Pull(lane); });
  add("push", [load](int lane) { return load->Push(lane); });
  add("push_pull", [load](int lane) { return load->PushPull(lane); });
  add("pull, then push", [load](int lane) { return load->PullOrPush(lane); });
  add("pull, same keys", [load](int lane) { return load->PullSame(lane); });
  add("pull, zipf", [load](int lane) { return load->PullZipf(lane); });
  add("pull, zipf, cached", [load](int lane) { return load->PullCached(lane); });
  return contenders;
}

}  // namespace covey::cli
