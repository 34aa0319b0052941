// SPDX-License-Identifier: Apache-2.0
#include "client/cli/chaos/server_scene.h"

#include "absl/strings/str_cat.h"
#include "client/cli/run/plan/run_options.h"
#include "common/base/status_macros.h"
#include "common/runtime/event_loop.h"

namespace covey::cli {
namespace {

constexpr absl::Duration kStep = absl::Microseconds(200);
constexpr absl::Duration kPump = absl::Milliseconds(20);
constexpr absl::Duration kPoll = absl::Milliseconds(50);

}  // namespace

absl::StatusOr<ServerScene> ServerScene::Make(const ExperimentContext& context,
                                              const Options& options) {
  RunOptions cluster_options;
  cluster_options.servers = options.servers;
  cluster_options.server_loops = 1;
  cluster_options.job = "chaos";
  context.say(absl::StrCat("starting a scheduler and ", options.servers, " servers"));
  COVEY_ASSIGN_OR_RETURN(std::unique_ptr<ChaosCluster> cluster,
                         ChaosCluster::Start(cluster_options, context.binaries, options.detoured));
  COVEY_ASSIGN_OR_RETURN(
      std::unique_ptr<LedgerLoad> load,
      LedgerLoad::Start(
          {.scheduler = cluster->address(), .job = cluster_options.job, .lanes = options.lanes}));
  context.say(absl::StrCat("pushing to ", options.lanes, " tables, each on two servers"));
  return ServerScene(std::move(cluster), std::move(load));
}

absl::Status ServerScene::Run(absl::Duration time) {
  return RunUntil(MonotonicNow() + time, [] { return false; });
}

absl::Status ServerScene::RunUntil(absl::Time until, absl::FunctionRef<bool()> done) {
  absl::Time next_pump = MonotonicNow();
  while (MonotonicNow() < until && !done()) {
    const absl::Time now = MonotonicNow();
    load_->Step(now);
    if (now >= next_pump) {
      cluster_->Pump();
      next_pump = now + kPump;
    }
    COVEY_RETURN_IF_ERROR(ChaosCluster::Pause(kStep));
  }
  return absl::OkStatus();
}

absl::Status ServerScene::WatchFor(
    absl::Time until, std::optional<absl::Time>& seen,
    absl::FunctionRef<bool(const proto::ClusterView&, absl::Time)> is_so) {
  absl::Time next = MonotonicNow();
  return RunUntil(until, [&] {
    if (MonotonicNow() < next) return false;
    const absl::Time asked = MonotonicNow();
    next = asked + kPoll;
    const absl::StatusOr<proto::StatusReply> status = cluster_->GetStatus();
    if (status.ok() && is_so(status->view(), asked)) seen = MonotonicNow();
    return seen.has_value();
  });
}

}  // namespace covey::cli
