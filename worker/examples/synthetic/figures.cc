#include "worker/examples/synthetic/figures.h"

#include <memory>

#include "client/parameter_client.h"
#include "common/base/status_macros.h"

namespace covey::synthetic {
namespace {

// Numbers of one worker in the table.
enum : size_t { kGroup, kSteps, kSamples, kSeconds, kComputeSeconds, kNumbers };

proto::TableSpec TableOf(size_t workers) {
  proto::TableSpec spec;
  spec.set_name("synthetic/figures");
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(workers * kNumbers);
  spec.mutable_optimizer()->set_kind(proto::Optimizer::SGD);
  spec.mutable_learning_rate()->set_base(1);
  spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
  return spec;
}

std::vector<Figures> FiguresOf(const std::vector<float>& numbers) {
  std::vector<Figures> figures;
  for (size_t first = 0; first < numbers.size(); first += kNumbers) {
    figures.push_back({.group = static_cast<uint32_t>(numbers[first + kGroup]),
                       .steps = static_cast<uint64_t>(numbers[first + kSteps]),
                       .samples = static_cast<uint64_t>(numbers[first + kSamples]),
                       .seconds = numbers[first + kSeconds],
                       .compute_seconds = numbers[first + kComputeSeconds]});
  }
  return figures;
}

}  // namespace

absl::StatusOr<std::vector<Figures>> GatherFigures(worker::Worker& worker,
                                                   const worker::WorkerConfig& config,
                                                   const Figures& own, absl::Duration patience) {
  std::vector<float> numbers(worker.size() * kNumbers, 0);
  float* mine = &numbers[worker.rank() * kNumbers];
  mine[kGroup] = static_cast<float>(own.group);
  mine[kSteps] = static_cast<float>(own.steps);
  mine[kSamples] = static_cast<float>(own.samples);
  mine[kSeconds] = static_cast<float>(own.seconds);
  mine[kComputeSeconds] = static_cast<float>(own.compute_seconds);
  COVEY_RETURN_IF_ERROR(worker.group().AllReduce(numbers).Wait());

  std::unique_ptr<client::ParameterClient> client;
  client::Table table;
  if (worker.group().rank() == 0) {
    client::ClientConfig client_config = config.cluster;
    client_config.rank = -1;
    COVEY_ASSIGN_OR_RETURN(client, client::ParameterClient::Connect(client_config));
    COVEY_ASSIGN_OR_RETURN(table, client->CreateTable(TableOf(worker.size())));
    // The server subtracts a gradient; each group has its own numbers and zeros for the others.
    for (float& number : numbers) number = -number;
    COVEY_RETURN_IF_ERROR(client->Push(table, numbers).Wait());
  }
  COVEY_RETURN_IF_ERROR(worker.Barrier(kFiguresBarrier, patience));
  if (worker.rank() != 0) return std::vector<Figures>();
  // Rank 0 is not always the first of its group.
  if (client == nullptr) {
    client::ClientConfig client_config = config.cluster;
    client_config.rank = -1;
    COVEY_ASSIGN_OR_RETURN(client, client::ParameterClient::Connect(client_config));
    COVEY_ASSIGN_OR_RETURN(table, client->FindTable(TableOf(worker.size()).name()));
  }
  COVEY_RETURN_IF_ERROR(client->Pull(table, numbers).Wait());
  return FiguresOf(numbers);
}

}  // namespace covey::synthetic
