// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/load/table_load.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/bench/limits/limit_load.h"
#include "client/cli/bench/limits/limits.h"
#include "client/cli/bench/load/operation_turn.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

using client::Handle;
using client::ParameterClient;
using client::Table;

using Clients = std::vector<std::unique_ptr<ParameterClient>>;

proto::TableSpec Spec(const Block& block, const TableLoadOptions& options) {
  proto::TableSpec spec =
      SpecOf(block, absl::StrCat(options.bytes, "/", options.replicas), options.replicas);
  spec.add_shape(options.bytes / sizeof(float));
  if (block.contract == proto::Contract::BUFFERED) spec.mutable_contract()->set_buffer(2);
  return spec;
}

// The table under measurement and the programs' memory: lanes of each client use different memory,
// as different tensors of a program would.
class TableUnderLoad {
 public:
  TableUnderLoad(ParameterClient& owner, Table table, size_t lanes)
      : owner_(owner), table_(std::move(table)) {
    for (size_t i = 0; i < lanes; ++i) {
      gradients_.emplace_back(table_.elements, 0.5f);
      values_.emplace_back(table_.elements, 0.0f);
    }
  }
  ~TableUnderLoad() {
    const absl::Status dropped = owner_.DropTable(table_.name);
    if (!dropped.ok()) LogWarning("drop_table", {{"why", dropped.message()}});
  }

  const Table& table() const { return table_; }
  std::span<const float> gradient(size_t lane) const { return gradients_[lane]; }
  std::span<float> values(size_t lane) { return values_[lane]; }

 private:
  ParameterClient& owner_;
  const Table table_;
  std::vector<std::vector<float>> gradients_, values_;
};

// Makes the contenders of one block and size.
class Maker {
 public:
  Maker(const Clients& clients, const Block& block, const TableLoadOptions& options)
      : clients_(clients), block_(block), options_(options) {}

  absl::Status Prepare() {
    const proto::TableSpec spec = Spec(block_, options_);
    COVEY_ASSIGN_OR_RETURN(Table table, clients_[0]->CreateTable(spec));
    // The reply shows the table to the client that asks.
    for (size_t i = 1; i < block_.clients; ++i) {
      COVEY_RETURN_IF_ERROR(clients_[i]->CreateTable(spec).status());
    }
    load_ = std::make_shared<TableUnderLoad>(*clients_[0], std::move(table),
                                             block_.clients * static_cast<size_t>(outstanding_));
    return absl::OkStatus();
  }

  std::vector<Contender> Rates() const {
    std::vector<Contender> contenders;
    for (const char* operation : {"push", "pull", "push_pull"}) {
      std::vector<Start> starts;
      for (size_t i = 0; i < block_.clients; ++i) starts.push_back(StartOf(operation, i));
      contenders.push_back({.rows = {Row(operation, "", "GB/s")},
                            .measure = [starts, turn = Turn()] { return RateOfAll(starts, turn); },
                            .has_cost = true});
    }
    return contenders;
  }

  std::vector<Contender> Trips() const {
    std::vector<Contender> contenders;
    for (const char* operation : {"push", "pull"}) {
      contenders.push_back({.rows = {Row(operation, " p50", "us"), Row(operation, " p99", "us"),
                                     Row(operation, " p99.9", "us")},
                            .measure = [start = StartOf(operation, 0),
                                        turn = Turn()] { return RoundTrips(start, turn); },
                            .has_cost = true});
    }
    return contenders;
  }

  std::vector<Contender> FreshPulls() const {
    const auto contender = [&](const char* suffix, const Start& push) {
      return Contender{.rows = {Row("pull", suffix, "GB/s")},
                       .measure = [push, pull = StartOf("pull", 0),
                                   turn = Turn()] { return OnePullAtATime(push, pull, turn); },
                       .has_cost = push == nullptr};
    };
    std::vector<Contender> contenders = {contender(" repeated", nullptr),
                                         contender(" after push", StartOf("push", 0))};
    contenders[1].rows[0].limits = {contenders[0].rows[0].what};
    return contenders;
  }

  absl::StatusOr<std::vector<Contender>> MixedLoad() const {
    TableLoadOptions small_options = options_;
    small_options.bytes = kRoundTripBytes;
    Maker small(clients_, block_, small_options);
    COVEY_RETURN_IF_ERROR(small.Prepare());
    return std::vector<Contender>{
        {.rows = {Row("small pull", " p50", "us"), Row("small pull", " p99", "us"),
                  Row("small pull", " p99.9", "us"), Row("push beside small pulls", "", "GB/s")},
         .measure = [push = StartOf("push", 0), pull = small.StartOf("pull", 0),
                     turn = Turn()] { return SmallBesideLarge(push, pull, turn); },
         .has_cost = true}};
  }

 private:
  OperationTurn Turn() const {
    return {.bytes = options_.bytes,
            .outstanding = outstanding_,
            .duration = options_.duration,
            .round_trips = options_.round_trips};
  }

  // Keeps the table until the function is destroyed.
  Start StartOf(const std::string& operation, size_t client) const {
    ParameterClient& used = *clients_[client];
    const size_t first = client * static_cast<size_t>(outstanding_);
    if (operation == "push") {
      return [load = load_, &used, first](int lane) {
        return used.Push(load->table(), load->gradient(first + lane));
      };
    }
    if (operation == "pull") {
      return [load = load_, &used, first](int lane) {
        return used.Pull(load->table(), load->values(first + lane));
      };
    }
    return [load = load_, &used, first](int lane) {
      return used.PushPull(load->table(), load->gradient(first + lane), load->values(first + lane));
    };
  }

  Figure Row(const std::string& operation, const std::string& suffix,
             const std::string& unit) const {
    Figure row = {
        .what = absl::StrCat("covey ", operation, LabelOf(block_, options_.replicas), suffix),
        .transport = options_.transport,
        .bytes = options_.bytes,
        .unit = unit};
    if (block_.has_limits) row.limits = LimitsOf(operation, suffix);
    if (block_.baseline_label != nullptr) {
      row.limits.push_back(absl::StrCat("covey ", operation, block_.baseline_label, suffix));
    }
    return row;
  }

  const Clients& clients_;
  const Block& block_;
  const TableLoadOptions options_;
  const int outstanding_ = OutstandingFor(options_.bytes);
  std::shared_ptr<TableUnderLoad> load_;
};

}  // namespace

int OutstandingFor(uint64_t bytes) {
  if (bytes >= (uint64_t{1} << 30)) return 1;
  return bytes >= (64u << 20) ? 4 : 8;
}

absl::StatusOr<std::vector<Contender>> MakeTableLoad(const Clients& clients, const Block& block,
                                                     const TableLoadOptions& options) {
  Maker maker(clients, block, options);
  COVEY_RETURN_IF_ERROR(maker.Prepare());
  switch (block.operations) {
    case Operations::kRates:
      return maker.Rates();
    case Operations::kRoundTrips:
      return maker.Trips();
    case Operations::kFreshPulls:
      return maker.FreshPulls();
    case Operations::kMixed:
      return maker.MixedLoad();
    case Operations::kRows:
    case Operations::kManyTables:
    case Operations::kMemory:
    case Operations::kCollectives:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat("block ", block.name, " has no tables"));
}

}  // namespace covey::cli
