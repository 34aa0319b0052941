// SPDX-License-Identifier: Apache-2.0

// Counts training examples on the servers: each example of the data set has an element of a table,
// and training the example adds 1 to it. When all passes are finished, every element must equal
// the number of passes: no example was lost, and none counted twice, however often the job was
// ended and continued from a snapshot.
//
// With --meet the members meet at the end of each pass. With one group whose members do not change
// in the pass, it must have added 1 to each element: no member has begun the next one.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/contract/contract.h"
#include "common/runtime/config_file.h"
#include "common/runtime/process_main.h"
#include "common/tensor/wire_format.h"
#include "common/tensor/wire_format_proto.h"
#include "worker/config.h"
#include "worker/data_source.h"
#include "worker/examples/choices.h"
#include "worker/hybrid_step.h"
#include "worker/worker.h"

namespace covey {
namespace {

constexpr uint64_t kShards = 5;

struct Options {
  uint64_t examples = 960;
  uint64_t passes = 10;
  uint64_t batch = 5;
  uint32_t replicas = 1;
  std::string contract = "async";
  // Rounds no gradient of a group of 1 or 2 members.
  WireFormat wire = WireFormat::kFloat32;
  absl::Duration pause = absl::Milliseconds(5);
  bool meet = false;
};

absl::StatusOr<proto::TableSpec> TableOf(const Options& options) {
  COVEY_ASSIGN_OR_RETURN(const Contract contract, ParseContract(options.contract));
  proto::TableSpec spec;
  spec.set_name("examples");
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(options.examples);
  spec.set_shard_bytes(options.examples / kShards * sizeof(float));
  spec.mutable_optimizer()->set_kind(proto::Optimizer::SGD);
  spec.mutable_learning_rate()->set_base(1);
  *spec.mutable_contract() = ContractToProto(contract);
  spec.set_gradient_format(ToProto(options.wire));
  spec.set_durability(options.replicas > 1 ? proto::REPLICATED : proto::MEMORY);
  if (options.replicas > 1) spec.set_replicas(options.replicas);
  return spec;
}

worker::DataSource::AtPassEnd AtPassEndOf(const Options& options) {
  using AtPassEnd = worker::DataSource::AtPassEnd;
  return options.meet ? AtPassEnd::kMeet : AtPassEnd::kGoOn;
}

// How many values differ from `passes`.
int64_t CountOther(const std::vector<float>& values, uint64_t passes) {
  return std::count_if(values.begin(), values.end(),
                       [&](float value) { return value != static_cast<float>(passes); });
}

absl::Status Train(const worker::WorkerConfig& config, const Options& options) {
  COVEY_ASSIGN_OR_RETURN(const auto worker, worker::Worker::Join(config));
  COVEY_ASSIGN_OR_RETURN(const proto::TableSpec table, TableOf(options));
  std::vector<float> values(options.examples);
  std::vector<float> gradient(options.examples);
  COVEY_ASSIGN_OR_RETURN(const auto hybrid,
                         worker::HybridStep::Create(
                             *worker, {{.table = table, .values = values, .gradient = gradient}}));
  COVEY_ASSIGN_OR_RETURN(const auto source,
                         worker::DataSource::Open(*worker, {.name = "examples",
                                                            .examples = options.examples,
                                                            .item_examples = options.batch,
                                                            .passes = options.passes,
                                                            .seed = 7,
                                                            .at_pass_end = AtPassEndOf(options)}));
  uint64_t trained = 0;  // in the present pass
  // Values at its begin; those of a worker that came in the middle are not.
  std::vector<float> before = values;
  LogInfo("pass_begins", {{"pass", source->pass()}});
  for (;;) {
    if (WaitForTermination(options.pause).has_value()) {
      COVEY_RETURN_IF_ERROR(worker->RequestDrain());
    }
    COVEY_ASSIGN_OR_RETURN(const auto batch, source->Take(options.batch));
    if (source->done()) {
      COVEY_ASSIGN_OR_RETURN(const bool is_over, source->MeetAtEnd(*hybrid));
      if (is_over) {
        COVEY_ASSIGN_OR_RETURN(const uint64_t last_step, hybrid->step());
        const int64_t wrong = std::inner_product(
            values.begin(), values.end(), before.begin(), int64_t{0}, std::plus<>(),
            [](float now, float then) { return std::abs(now - then - 1) > 0.01f ? 1 : 0; });
        before = values;
        LogInfo("pass_over", {{"pass", source->pass()},
                              {"step", last_step},
                              {"trained", std::exchange(trained, 0)},
                              {"wrong", wrong}});
        COVEY_ASSIGN_OR_RETURN(const bool goes_on, source->NextPass());
        if (!goes_on) break;
        continue;
      }
    }
    trained += batch.size();
    COVEY_RETURN_IF_ERROR(hybrid->Wait(0));
    COVEY_RETURN_IF_ERROR(hybrid->Begin(1));
    // An update is the mean over the members of the group, at rate 1.
    std::fill(gradient.begin(), gradient.end(), 0.0f);
    for (const uint32_t example : batch) {
      gradient[example] -= static_cast<float>(worker->group().size());
    }
    COVEY_RETURN_IF_ERROR(hybrid->Submit(0));
    hybrid->Report(0);
    source->Finish(1);
  }
  COVEY_RETURN_IF_ERROR(hybrid->Finish());
  COVEY_RETURN_IF_ERROR(worker->Barrier("examples/counted", absl::Minutes(1)));
  COVEY_RETURN_IF_ERROR(hybrid->Refresh());
  const int64_t wrong = CountOther(values, options.passes);
  COVEY_ASSIGN_OR_RETURN(const uint64_t step, hybrid->step());
  std::cout
      << "result "
      << nlohmann::json({{"examples", options.examples}, {"wrong", wrong}, {"step", step}}).dump()
      << "\n";
  if (wrong == 0) return absl::OkStatus();
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return absl::DataLossError(absl::StrCat(wrong, " of ", options.examples,
                                          " examples were not counted ", options.passes,
                                          " times: from ", *least, " to ", *most, " times"));
}

int Main(int argc, char** argv) {
  InitProcess("examples_worker");
  worker::WorkerConfig config;
  Options options;
  ConfigFile file("examples_worker", "Counts training examples on the servers.");
  config.AddTo(file);
  file.Add("examples", &options.examples, "in the data set; a multiple of 80");
  file.Add("passes", &options.passes, "over the data set");
  file.Add("batch", &options.batch, "examples per step of a worker");
  file.Add("replicas", &options.replicas, "of the table");
  file.Add("contract", &options.contract, "of the table; async");
  examples::AddWireFormat(file, &options.wire);
  file.Add("pause", &options.pause, "between two steps");
  file.Add("meet", &options.meet, "at the end of each pass");
  if (const std::optional<int> code = file.LoadForMain(argc, argv)) return *code;
  absl::Status status = Train(config, options);
  // It was drained.
  if (absl::IsCancelled(status)) status = absl::OkStatus();
  if (!status.ok()) LogError("failed", {{"reason", status.message()}});
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace covey

int main(int argc, char** argv) { return covey::Main(argc, argv); }
