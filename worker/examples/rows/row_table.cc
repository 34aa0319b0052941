// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/rows/row_table.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"

namespace covey::examples {
namespace {

// Of one pull of Read: some MiB at the widest.
constexpr size_t kKeysAtOnce = 16'384;

}  // namespace

absl::StatusOr<std::unique_ptr<RowTable>> RowTable::Open(worker::Worker& worker,
                                                         client::ParameterClient& client,
                                                         const proto::TableSpec& spec) {
  COVEY_ASSIGN_OR_RETURN(client::Table table, client.CreateTable(spec));
  auto rows = std::unique_ptr<RowTable>(new RowTable(client, std::move(table)));
  if (spec.contract().kind() == proto::Contract::LOCAL) {
    COVEY_ASSIGN_OR_RETURN(rows->local_, worker::LocalRows::Open(worker, spec, {}));
  }
  return rows;
}

RowTable::~RowTable() {
  pull_.Wait().IgnoreError();
  push_.Wait().IgnoreError();
}

absl::Status RowTable::StartPull(std::span<const uint64_t> keys) {
  COVEY_RETURN_IF_ERROR(WaitForRows());
  rows_.resize(keys.size() * table_.width);
  gradients_.resize(rows_.size());
  if (local_ != nullptr) return local_->Pull(keys, rows_);
  COVEY_RETURN_IF_ERROR(batch_.Assign(table_, keys));
  pull_ = client_.Pull(table_, batch_, std::span<float>(rows_));
  return absl::OkStatus();
}

absl::Status RowTable::WaitForRows() { return pull_.Wait(); }

absl::Status RowTable::Push(uint64_t samples) {
  if (local_ != nullptr) return local_->Step(gradients_, samples);
  COVEY_RETURN_IF_ERROR(Finish());
  push_ = filter_ != nullptr ? filter_->Push(batch_, rows_, gradients_, {.samples = samples})
                             : client_.Push(table_, batch_, gradients_, {.samples = samples});
  return absl::OkStatus();
}

absl::Status RowTable::Skip() {
  if (local_ == nullptr) return Finish();
  COVEY_RETURN_IF_ERROR(local_->Pull({}, {}));
  return local_->Step({}, 0);
}

absl::Status RowTable::EndRounds() {
  if (local_ == nullptr) return absl::OkStatus();
  COVEY_RETURN_IF_ERROR(local_->Finish());
  local_ = nullptr;
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> RowTable::Bytes() {
  COVEY_ASSIGN_OR_RETURN(const client::Counters counters,
                         local_ != nullptr ? local_->GetCounters() : client_.GetCounters());
  return counters.bytes_sent + counters.bytes_received;
}

absl::Status RowTable::StartFilter(const client::RowFilter::Options& options) {
  COVEY_RETURN_IF_ERROR(StopFilter());
  COVEY_ASSIGN_OR_RETURN(filter_, client::RowFilter::Create(client_, table_, options));
  return absl::OkStatus();
}

absl::Status RowTable::StopFilter() {
  COVEY_RETURN_IF_ERROR(Finish());
  if (filter_ == nullptr) return absl::OkStatus();
  COVEY_RETURN_IF_ERROR(filter_->Flush());
  filtered_ = filter_->counts();
  filter_ = nullptr;
  return absl::OkStatus();
}

absl::Status RowTable::Finish() { return push_.Wait(); }

absl::Status RowTable::Read(std::span<const uint64_t> keys, std::span<float> rows) {
  client::RowBatch batch;
  for (size_t first = 0; first < keys.size(); first += kKeysAtOnce) {
    const size_t count = std::min(kKeysAtOnce, keys.size() - first);
    COVEY_RETURN_IF_ERROR(batch.Assign(table_, keys.subspan(first, count)));
    const auto part = rows.subspan(first * table_.width, count * table_.width);
    COVEY_RETURN_IF_ERROR(client_.Pull(table_, batch, part).Wait());
  }
  return absl::OkStatus();
}

proto::TableSpec RowsSpec(absl::string_view name, uint32_t width) {
  proto::TableSpec spec;
  spec.set_name(std::string(name));
  spec.set_data_type(proto::FLOAT32);
  spec.mutable_sparse()->set_width(width);
  spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
  return spec;
}

}  // namespace covey::examples
