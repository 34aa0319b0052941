// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/measuring.h"

#include <poll.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "client/cli/bench/limits/limit_load.h"
#include "client/cli/bench/limits/limits.h"
#include "client/cli/bench/load/kernel_load.h"
#include "client/cli/bench/load/many_tables_load.h"
#include "client/cli/bench/load/row_load.h"
#include "client/cli/bench/load/table_load.h"
#include "client/cli/bench/machine/process_family.h"
#include "client/cli/bench/measure/quiet_gate.h"
#include "client/cli/bench/measure/turns.h"
#include "client/cli/bench/peers/collective_load.h"
#include "client/cli/bench/peers/redis_peer.h"
#include "client/parameter_client.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/runtime/process_main.h"
#include "proto/scheduler.pb.h"
#include "proto/view.pb.h"

namespace covey::cli {
namespace {

using Clients = std::vector<std::unique_ptr<client::ParameterClient>>;

template <typename T>
void Append(std::vector<T>& to, std::vector<T> from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

constexpr absl::Duration kClusterStartsMax = absl::Seconds(30);
constexpr absl::Duration kStatusInterval = absl::Milliseconds(20);

struct Servers {
  uint32_t count = 0;
  std::vector<pid_t> local;  // process ids of those on this machine
};

absl::StatusOr<Servers> FindServers(client::ParameterClient& client) {
  COVEY_ASSIGN_OR_RETURN(const proto::StatusReply status, client.GetStatus());
  Servers servers;
  for (const proto::Node& node : status.view().nodes()) {
    if (node.role() != proto::SERVER || node.state() != proto::Node::ALIVE) continue;
    ++servers.count;
    if (node.host() == HostName()) servers.local.push_back(static_cast<pid_t>(node.process_id()));
  }
  return servers;
}

// Waits until the servers that the blocks need have registered.
absl::StatusOr<std::vector<pid_t>> LocalServers(const BenchOptions& options,
                                                client::ParameterClient& client) {
  uint32_t needed = 1;
  for (const Block& block : options.blocks) needed = std::max(needed, block.servers);
  const absl::Time until = MonotonicNow() + kClusterStartsMax;
  COVEY_ASSIGN_OR_RETURN(Servers servers, FindServers(client));
  while (servers.count < needed && MonotonicNow() < until) {
    poll(nullptr, 0, static_cast<int>(absl::ToInt64Milliseconds(kStatusInterval)));
    COVEY_ASSIGN_OR_RETURN(servers, FindServers(client));
  }
  return servers.local;
}

// Measures blocks one after another; within a block and size all contenders take turns.
class Measuring {
 public:
  Measuring(const BenchOptions& options, const Clients& clients, std::vector<pid_t> servers,
            const std::function<void(absl::string_view)>& progress)
      : options_(options),
        clients_(clients),
        family_(std::move(servers)),
        gate_({.budget = options.quiet_wait},
              {.read = [this] { return family_.ReadTicks(); },
               .now = [] { return MonotonicNow(); },
               .wait =
                   [](absl::Duration duration) {
                     poll(nullptr, 0, static_cast<int>(absl::ToInt64Milliseconds(duration)));
                   }}),
        progress_(progress) {}

  // Not without clients when the block needs a cluster.
  absl::Status Measure(const Block& block) {
    if (block.operations == Operations::kMemory) return MeasureMemory();
    if (block.operations == Operations::kCollectives) return MeasureCollectives(block);
    const std::vector<uint64_t> sizes = block.operations == Operations::kRoundTrips
                                            ? std::vector<uint64_t>{kRoundTripBytes}
                                            : SizesOf(block, options_.sizes);
    for (const uint64_t bytes : sizes) COVEY_RETURN_IF_ERROR(MeasureSize(block, bytes));
    return absl::OkStatus();
  }

  BenchResult TakeResult() {
    const QuietGate::Counts& counts = gate_.counts();
    result_.quietness = {.kept = counts.kept,
                         .rejected = counts.rejected,
                         .noisy = counts.noisy,
                         .foreign_share_max = counts.foreign_share_max,
                         .steal_share_max = counts.steal_share_max,
                         .waited_seconds = absl::ToDoubleSeconds(counts.waited)};
    return std::move(result_);
  }

 private:
  absl::Status MeasureMemory() {
    std::vector<Contender> contenders = MakeKernelLoad(options_.memory_bytes, options_.duration);
    if (options_.limits)
      Append(contenders, MakeMemoryLimits(options_.memory_bytes, options_.duration));
    return TakeTurns(std::move(contenders));
  }

  absl::Status MeasureCollectives(const Block& block) {
    const CollectivePrograms programs;
    Append(result_.left_out, programs.left_out());
    for (const std::string& transport : options_.transports) {
      for (const uint32_t members : options_.members) {
        for (const uint64_t bytes : SizesOf(block, options_.sizes)) {
          std::vector<Contender> contenders = programs.MakeContenders(
              {.transport = transport, .bytes = bytes, .members = members}, options_.algorithms);
          if (!contenders.empty()) COVEY_RETURN_IF_ERROR(TakeTurns(std::move(contenders)));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status MeasureSize(const Block& block, uint64_t bytes) {
    std::vector<Contender> contenders;
    const std::vector<uint32_t> given = {block.replicas};
    for (const uint32_t replicas : block.replicas == 0 ? options_.replicas : given) {
      COVEY_RETURN_IF_ERROR(AddTableLoad(block, bytes, replicas, contenders));
    }
    if (block.baseline_label != nullptr) {
      COVEY_RETURN_IF_ERROR(AddTableLoad(BaselineOf(block), bytes, 1, contenders));
    }
    if (block.has_limits && options_.limits) {
      COVEY_RETURN_IF_ERROR(AddLimits({.transport = options_.transports[0],
                                       .bytes = bytes,
                                       .lanes = static_cast<size_t>(OutstandingFor(bytes)),
                                       .duration = options_.duration,
                                       .round_trips = options_.round_trips},
                                      contenders));
    }
    return TakeTurns(std::move(contenders));
  }

  absl::Status AddTableLoad(const Block& block, uint64_t bytes, uint32_t replicas,
                            std::vector<Contender>& contenders) {
    const auto make = block.operations == Operations::kRows         ? MakeRowLoad
                      : block.operations == Operations::kManyTables ? MakeManyTablesLoad
                                                                    : MakeTableLoad;
    COVEY_ASSIGN_OR_RETURN(std::vector<Contender> load,
                           make(clients_, block,
                                {.transport = options_.transports[0],
                                 .bytes = bytes,
                                 .replicas = replicas,
                                 .duration = options_.duration,
                                 .round_trips = options_.round_trips}));
    Append(contenders, std::move(load));
    return absl::OkStatus();
  }

  absl::Status AddLimits(const LimitLoad& load, std::vector<Contender>& contenders) {
    std::vector<std::string> left_out;
    COVEY_ASSIGN_OR_RETURN(std::vector<Contender> limits, MakeLimits(load, left_out));
    Append(contenders, std::move(limits));
    Append(contenders, MakeRedisPeers(load, left_out));
    for (std::string& line : left_out) {
      // Once, not for each size.
      const std::vector<std::string>& known = result_.left_out;
      if (std::find(known.begin(), known.end(), line) == known.end()) {
        result_.left_out.push_back(std::move(line));
      }
    }
    return absl::OkStatus();
  }

  absl::Status TakeTurns(std::vector<Contender> contenders) {
    const CostMeter meter = {.usage = [this] { return family_.ReadUsage(); },
                             .memory = [this](Cost& cost) { family_.ReadMemory(cost); }};
    COVEY_ASSIGN_OR_RETURN(
        std::vector<Figure> figures,
        MeasureInTurns(std::move(contenders), {.repetitions = options_.repetitions}, gate_, meter));
    for (Figure& figure : figures) {
      progress_(FigureAsLine(figure));
      result_.figures.push_back(std::move(figure));
    }
    return absl::OkStatus();
  }

  const BenchOptions& options_;
  const Clients& clients_;
  const ProcessFamily family_;
  QuietGate gate_;
  const std::function<void(absl::string_view)>& progress_;
  BenchResult result_;
};

}  // namespace

absl::StatusOr<BenchResult> MeasureCluster(const BenchOptions& options,
                                           const std::function<void(absl::string_view)>& progress) {
  uint32_t clients_max = 1;
  for (const Block& block : options.blocks) clients_max = std::max(clients_max, block.clients);
  Clients clients;
  for (uint32_t i = 0; i < clients_max; ++i) {
    COVEY_ASSIGN_OR_RETURN(
        clients.emplace_back(),
        client::ParameterClient::Connect(
            {.scheduler = options.scheduler, .job = options.job, .tls = options.tls}));
  }
  COVEY_ASSIGN_OR_RETURN(std::vector<pid_t> servers, LocalServers(options, *clients[0]));
  Measuring measuring(options, clients, std::move(servers), progress);
  for (const Block& block : options.blocks) {
    if (NeedsCluster(block.operations)) COVEY_RETURN_IF_ERROR(measuring.Measure(block));
  }
  return measuring.TakeResult();
}

absl::StatusOr<BenchResult> MeasureWithoutCluster(
    const BenchOptions& options, const std::function<void(absl::string_view)>& progress) {
  const Clients none;
  Measuring measuring(options, none, {}, progress);
  for (const Block& block : options.blocks) {
    if (!NeedsCluster(block.operations)) COVEY_RETURN_IF_ERROR(measuring.Measure(block));
  }
  return measuring.TakeResult();
}

}  // namespace covey::cli
