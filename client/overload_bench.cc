// SPDX-License-Identifier: Apache-2.0

// Offers a running cluster more pushes than it can process, and reports the result:
//
//   overload_bench HOST:PORT CLIENTS OUTSTANDING MIB SECONDS
//
// CLIENTS clients in this process push gradients of MIB to a table of their own, each with
// OUTSTANDING pushes at a time, whatever the cluster's capacity. Prints goodput (bytes of
// successful pushes per second) and push latencies. Watch the cluster's memory and heartbeats with
// other tools (`covey status`, /proc).

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/parameter_client.h"
#include "common/base/log.h"
#include "common/runtime/event_loop.h"
#include "proto/table.pb.h"

namespace covey::client {
namespace {

struct Load {
  std::unique_ptr<ParameterClient> client;
  Table table;
  std::vector<float> gradient;
  std::deque<std::pair<absl::Time, Handle>> under_way;
};

proto::TableSpec Spec(int number, size_t bytes) {
  proto::TableSpec spec;
  spec.set_name(absl::StrCat("overload/", number));
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(bytes / sizeof(float));
  spec.mutable_optimizer()->set_kind(proto::Optimizer::SGD);
  spec.mutable_learning_rate()->set_base(1e-6);
  spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
  return spec;
}

absl::Status Run(const std::string& scheduler, int clients, int outstanding, size_t mib,
                 absl::Duration duration) {
  std::vector<Load> loads(clients);
  for (int i = 0; i < clients; ++i) {
    auto client = ParameterClient::Connect({.scheduler = scheduler});
    if (!client.ok()) return client.status();
    loads[i].client = *std::move(client);
    auto table = loads[i].client->CreateTable(Spec(i, mib << 20));
    if (!table.ok()) return table.status();
    loads[i].table = *table;
    loads[i].gradient.assign(table->elements, 0.5f);
  }
  const absl::Time begin = MonotonicNow();
  const absl::Time end = begin + duration;
  std::vector<double> milliseconds;
  uint64_t failed = 0;
  std::string first_failure;
  size_t left = 0;
  do {
    left = 0;
    for (Load& load : loads) {
      while (!load.under_way.empty() && load.under_way.front().second.done()) {
        const auto& [started, handle] = load.under_way.front();
        if (handle.Wait().ok()) {
          milliseconds.push_back(absl::ToDoubleMilliseconds(MonotonicNow() - started));
        } else if (failed++ == 0) {
          first_failure = std::string(handle.Wait().message());
        }
        load.under_way.pop_front();
      }
      while (MonotonicNow() < end && load.under_way.size() < static_cast<size_t>(outstanding)) {
        load.under_way.emplace_back(MonotonicNow(), load.client->Push(load.table, load.gradient));
      }
      left += load.under_way.size();
    }
    const auto busy = std::find_if(loads.begin(), loads.end(),
                                   [](const Load& load) { return !load.under_way.empty(); });
    if (busy != loads.end()) {
      busy->under_way.front().second.WaitFor(absl::Milliseconds(1)).IgnoreError();
    }
  } while (left > 0);
  const double seconds = absl::ToDoubleSeconds(MonotonicNow() - begin);
  std::sort(milliseconds.begin(), milliseconds.end());
  const auto quantile = [&](double q) {
    return milliseconds.empty() ? 0.0
                                : milliseconds[static_cast<size_t>(
                                      q * static_cast<double>(milliseconds.size() - 1))];
  };
  const double bytes = static_cast<double>(milliseconds.size()) * static_cast<double>(mib << 20);
  Counters counters;
  for (const Load& load : loads) {
    const auto its = load.client->GetCounters();
    if (!its.ok()) return its.status();
    counters.repeats += its->repeats;
    counters.refusals += its->refusals;
  }
  LogInfo("overload", {{"clients", clients},
                       {"outstanding", outstanding},
                       {"push_mib", mib},
                       {"gigabytes_per_second", bytes / seconds / 1e9},
                       {"p50_ms", quantile(0.5)},
                       {"p99_ms", quantile(0.99)},
                       {"ok", milliseconds.size()},
                       {"repeats", counters.repeats},
                       {"refusals", counters.refusals},
                       {"failed", failed},
                       {"first_failure", first_failure}});
  for (int i = 0; i < clients; ++i) {
    if (absl::Status dropped = loads[i].client->DropTable(loads[i].table.name); !dropped.ok()) {
      return dropped;
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace covey::client

int main(int argc, char** argv) {
  if (argc != 6) {
    covey::LogError("usage", {{"arguments", "HOST:PORT CLIENTS OUTSTANDING MIB SECONDS"}});
    return 2;
  }
  const absl::Status status = covey::client::Run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]),
                                                 static_cast<size_t>(std::atoi(argv[4])),
                                                 absl::Seconds(std::atoi(argv[5])));
  if (!status.ok()) covey::LogError("overload_failed", {{"reason", status.message()}});
  return status.ok() ? 0 : 1;
}
