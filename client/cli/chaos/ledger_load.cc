// SPDX-License-Identifier: Apache-2.0
#include "client/cli/chaos/ledger_load.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "proto/table.pb.h"

namespace covey::cli {
namespace {

constexpr absl::Duration kFlushMax = absl::Seconds(20);

proto::TableSpec TableOf(size_t lane, uint64_t elements) {
  proto::TableSpec spec;
  spec.set_name(absl::StrCat("chaos/", lane));
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(elements);
  spec.mutable_optimizer()->set_kind(proto::Optimizer::SGD);
  spec.mutable_learning_rate()->set_base(1);
  spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
  spec.set_durability(proto::REPLICATED);
  spec.set_replicas(2);
  return spec;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LedgerLoad>> LedgerLoad::Start(const Options& options) {
  auto load = std::unique_ptr<LedgerLoad>(new LedgerLoad(options));
  client::ClientConfig config;
  config.scheduler = options.scheduler;
  config.job = options.job;
  config.operation_deadline = options.push_deadline;
  COVEY_ASSIGN_OR_RETURN(load->client_, client::ParameterClient::Connect(config));
  // The server subtracts a gradient.
  load->gradient_.assign(options.elements, -1);
  for (size_t i = 0; i < options.lanes; ++i) {
    auto lane = std::make_unique<Lane>();
    COVEY_ASSIGN_OR_RETURN(lane->table, load->client_->CreateTable(TableOf(i, options.elements)));
    load->lanes_.push_back(std::move(lane));
  }
  return load;
}

LedgerLoad::~LedgerLoad() {
  for (const auto& lane : lanes_) lane->handle.Wait().IgnoreError();
}

void LedgerLoad::Step(absl::Time now) {
  for (const auto& lane : lanes_) {
    if (lane->under_way) {
      if (!lane->handle.done()) continue;
      lane->under_way = false;
      const absl::Status status = lane->handle.Wait();
      if (status.ok()) {
        ++lane->acknowledged;
        lane->times.push_back(now);
        if (lane->times.size() > kTimesMax) lane->times.pop_front();
      } else {
        ++lane->unknown;
        lane->last_error = std::string(status.message());
      }
    }
    lane->handle = client_->Push(lane->table, gradient_);
    lane->under_way = true;
  }
}

absl::Status LedgerLoad::Finish() {
  for (const auto& lane : lanes_) {
    if (!lane->under_way) continue;
    const absl::Status status = lane->handle.Wait();
    ++(status.ok() ? lane->acknowledged : lane->unknown);
    if (!status.ok()) lane->last_error = std::string(status.message());
    lane->under_way = false;
  }
  return client_->Flush(kFlushMax);
}

absl::StatusOr<LedgerLoad::Audit> LedgerLoad::Check() {
  Audit audit;
  std::vector<float> values(options_.elements);
  for (const auto& lane : lanes_) {
    COVEY_RETURN_IF_ERROR(client_->Pull(lane->table, values).Wait());
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    if (*least != *most) ++audit.torn;
    const auto applied = static_cast<uint64_t>(std::llround(std::max(*least, 0.0f)));
    const uint64_t pushed = lane->acknowledged + lane->unknown;
    audit.acknowledged += lane->acknowledged;
    audit.unknown += lane->unknown;
    if (applied < lane->acknowledged) audit.lost += lane->acknowledged - applied;
    if (applied > pushed) audit.doubled += applied - pushed;
  }
  return audit;
}

double LedgerLoad::RateOf(const Lane& lane, absl::Time from, absl::Time to) {
  const auto first = std::lower_bound(lane.times.begin(), lane.times.end(), from);
  const auto end = std::lower_bound(lane.times.begin(), lane.times.end(), to);
  return static_cast<double>(end - first) / absl::ToDoubleSeconds(to - from);
}

}  // namespace covey::cli
