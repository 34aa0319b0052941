// SPDX-License-Identifier: Apache-2.0

// Creates a sparse table with evictions by age, or finds it, and pushes to rows. Key number I is a
// hash; each push of it adds (I, 1) to its row.
//   rows_client HOST:PORT JOB TABLE ROWS_MAX FIRST LAST      pushes keys number FIRST to LAST

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "client/parameter_client.h"
#include "client/row_batch.h"
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/runtime/process_main.h"
#include "proto/table.pb.h"

namespace {

// Of one push.
constexpr uint64_t kKeys = 1000;

covey::proto::TableSpec Spec(const std::string& name, uint64_t rows_max) {
  covey::proto::TableSpec spec;
  spec.set_name(name);
  spec.set_data_type(covey::proto::FLOAT32);
  spec.mutable_sparse()->set_width(2);
  spec.mutable_sparse()->set_rows_max(rows_max);
  spec.mutable_sparse()->set_when_full(covey::proto::SparseRows::EVICT);
  spec.mutable_learning_rate()->set_base(1);
  spec.mutable_contract()->set_kind(covey::proto::Contract::ASYNC);
  return spec;
}

absl::Status PushAll(const std::vector<std::string>& words) {
  uint64_t rows_max = 0;
  uint64_t first = 0;
  uint64_t last = 0;
  if (words.size() != 6 || !absl::SimpleAtoi(words[3], &rows_max) ||
      !absl::SimpleAtoi(words[4], &first) || !absl::SimpleAtoi(words[5], &last)) {
    return absl::InvalidArgumentError("usage: rows_client HOST:PORT JOB TABLE ROWS_MAX FIRST LAST");
  }
  COVEY_ASSIGN_OR_RETURN(const auto client, covey::client::ParameterClient::Connect(
                                                {.scheduler = words[0], .job = words[1]}));
  COVEY_ASSIGN_OR_RETURN(const covey::client::Table table,
                         client->CreateTable(Spec(words[2], rows_max)));
  covey::client::RowBatch batch;
  for (uint64_t begin = first; begin <= last; begin += kKeys) {
    std::vector<uint64_t> keys;
    std::vector<float> gradient;
    for (uint64_t i = begin; i <= std::min(last, begin + kKeys - 1); ++i) {
      keys.push_back(covey::MixBits(i));
      gradient.insert(gradient.end(), {-static_cast<float>(i), -1});
    }
    COVEY_RETURN_IF_ERROR(batch.Assign(table, keys));
    COVEY_RETURN_IF_ERROR(client->Push(table, batch, gradient).Wait());
  }
  return client->Flush(absl::Seconds(30));
}

}  // namespace

int main(int argc, char** argv) {
  covey::InitProcess("rows_client");
  const absl::Status status = PushAll({argv + 1, argv + argc});
  if (!status.ok()) covey::LogError("failed", {{"reason", status.message()}});
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}
