// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/load/many_tables_load.h"

#include <functional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/row_batch.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "proto/table.pb.h"

namespace covey::cli {
namespace {

using client::Handle;
using client::ParameterClient;
using client::RowBatch;
using client::RowsToPull;
using client::RowsToPush;
using client::Table;

constexpr size_t kTables = 26;
constexpr size_t kKeys = 128;  // of a table and step
constexpr uint32_t kWidth = 16;
// Of a table; so all 26 have a million.
constexpr uint64_t kRows = 40'000;
constexpr size_t kSteps = 16;  // with different keys, in turns
constexpr uint64_t kStepsMin = 4;
// Pulled and pushed.
constexpr uint64_t kRowsPerStep = 2 * kTables * kKeys;

proto::TableSpec Spec(const Block& block, const std::string& name, uint32_t replicas) {
  proto::TableSpec spec = SpecOf(block, absl::StrCat(replicas, "/", name), replicas);
  spec.mutable_sparse()->set_width(kWidth);
  return spec;
}

// Tables that a step pulls and pushes, so many rows of each, with the keys of some steps.
class TablesUnderLoad {
 public:
  TablesUnderLoad(ParameterClient& owner, size_t keys) : owner_(owner), keys_(keys) {}
  ~TablesUnderLoad() {
    for (const Place& place : places_) {
      const absl::Status dropped = owner_.DropTable(place.table.name);
      if (!dropped.ok()) LogWarning("drop_table", {{"why", dropped.message()}});
    }
  }

  // Adds a table, and makes so many rows.
  absl::Status Add(const proto::TableSpec& spec, uint64_t rows, Random& random) {
    COVEY_ASSIGN_OR_RETURN(Table table, owner_.CreateTable(spec));
    places_.push_back({.table = std::move(table)});
    Place& place = places_.back();
    place.gradient.assign(keys_ * kWidth, 0.5f);
    place.rows.resize(keys_ * kWidth);
    for (size_t step = 0; step < kSteps; ++step) {
      std::set<uint64_t> distinct;
      while (distinct.size() < keys_) distinct.insert(random.Below(rows));
      place.keys.emplace_back(distinct.begin(), distinct.end());
    }
    const std::vector<float> zeros(kRows * kWidth);
    std::vector<uint64_t> keys(kRows);
    for (uint64_t first = 0; first < rows; first += kRows) {
      for (uint64_t i = 0; i < kRows; ++i) keys[i] = first + i;
      COVEY_RETURN_IF_ERROR(place.batch.Assign(place.table, keys));
      COVEY_RETURN_IF_ERROR(owner_.Push(place.table, place.batch, zeros).Wait());
    }
    return absl::OkStatus();
  }

  absl::Status AtOnce() {
    COVEY_RETURN_IF_ERROR(SortKeys());
    std::vector<Handle> handles;
    for (Place& place : places_) handles.push_back(Pull(place));
    for (Place& place : places_) handles.push_back(Push(place));
    for (const Handle& handle : handles) COVEY_RETURN_IF_ERROR(handle.Wait());
    return absl::OkStatus();
  }
  absl::Status Many() {
    COVEY_RETURN_IF_ERROR(SortKeys());
    const Handle pull = PullMany();
    const Handle push = PushMany();
    COVEY_RETURN_IF_ERROR(pull.Wait());
    return push.Wait();
  }
  absl::Status PullThenPush() {
    COVEY_RETURN_IF_ERROR(SortKeys());
    COVEY_RETURN_IF_ERROR(PullMany().Wait());
    return PushMany().Wait();
  }
  absl::Status InTurn() {
    COVEY_RETURN_IF_ERROR(SortKeys());
    for (Place& place : places_) {
      COVEY_RETURN_IF_ERROR(Pull(place).Wait());
      COVEY_RETURN_IF_ERROR(Push(place).Wait());
    }
    return absl::OkStatus();
  }

 private:
  struct Place {
    Table table;
    std::vector<std::vector<uint64_t>> keys = {};  // of the steps
    RowBatch batch = {};
    std::vector<float> gradient = {};
    std::vector<float> rows = {};
  };

  absl::Status SortKeys() {
    const size_t step = next_++ % kSteps;
    for (Place& place : places_) {
      COVEY_RETURN_IF_ERROR(place.batch.Assign(place.table, place.keys[step]));
    }
    return absl::OkStatus();
  }
  Handle Pull(Place& place) {
    return owner_.Pull(place.table, place.batch, std::span<float>(place.rows));
  }
  Handle Push(Place& place) { return owner_.Push(place.table, place.batch, place.gradient); }
  Handle PullMany() {
    std::vector<RowsToPull> all;
    for (Place& place : places_) {
      all.push_back({.table = place.table, .batch = place.batch, .rows = place.rows});
    }
    return owner_.PullMany(all);
  }
  Handle PushMany() {
    std::vector<RowsToPush> all;
    for (Place& place : places_) {
      all.push_back({.table = place.table, .batch = place.batch, .gradient = place.gradient});
    }
    return owner_.PushMany(all);
  }

  ParameterClient& owner_;
  const size_t keys_;
  std::vector<Place> places_;
  size_t next_ = 0;
};

using Step = std::function<absl::Status()>;

absl::StatusOr<Sample> RateOfSteps(const Step& step, absl::Duration duration) {
  uint64_t steps = 0;
  const absl::Time begin = MonotonicNow();
  absl::Duration taken;
  do {
    COVEY_RETURN_IF_ERROR(step());
    ++steps;
    taken = MonotonicNow() - begin;
  } while (steps < kStepsMin || taken < duration);
  const uint64_t rows = steps * kRowsPerStep;
  return Sample{.values = {static_cast<double>(rows) / absl::ToDoubleMicroseconds(taken)},
                .operations = steps,
                .bytes = rows * kWidth * sizeof(float)};
}

}  // namespace

absl::StatusOr<std::vector<Contender>> MakeManyTablesLoad(
    const std::vector<std::unique_ptr<ParameterClient>>& clients, const Block& block,
    const TableLoadOptions& options) {
  Random random(1);
  const auto many = std::make_shared<TablesUnderLoad>(*clients[0], kKeys);
  for (size_t i = 0; i < kTables; ++i) {
    COVEY_RETURN_IF_ERROR(many->Add(Spec(block, absl::StrCat(i), options.replicas), kRows, random));
  }
  const auto one = std::make_shared<TablesUnderLoad>(*clients[0], kTables * kKeys);
  COVEY_RETURN_IF_ERROR(one->Add(Spec(block, "one", options.replicas), kTables * kRows, random));

  const auto named = [&](const std::string& what) {
    return absl::StrCat("covey ", what, LabelOf(block, options.replicas));
  };
  std::vector<Contender> contenders;
  const auto add = [&](const std::string& what, const std::string& limit, Step step) {
    Figure row{.what = named(what),
               .transport = options.transport,
               .bytes = kRowsPerStep * kWidth * sizeof(float),
               .unit = "M rows/s"};
    if (!limit.empty()) row.limits = {named(limit)};
    contenders.push_back(
        {.rows = {std::move(row)},
         .measure = [step = std::move(step),
                     duration = options.duration] { return RateOfSteps(step, duration); },
         .has_cost = true});
  };
  const std::string at_once = "one table", then = "one table, pull, then push";
  add(at_once, "", [one] { return one->AtOnce(); });
  add("26 tables at once", at_once, [many] { return many->AtOnce(); });
  add("26 tables, many", at_once, [many] { return many->Many(); });
  add("26 tables in turn", at_once, [many] { return many->InTurn(); });
  add(then, "", [one] { return one->PullThenPush(); });
  add("26 tables, pull, then push", then, [many] { return many->PullThenPush(); });
  return contenders;
}

}  // namespace covey::cli
