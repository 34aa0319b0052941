// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/chaos/experiments.h"
#include "client/cli/chaos/lane_figures.h"
#include "client/cli/chaos/ledger_load.h"
#include "client/cli/chaos/ledger_promises.h"
#include "client/cli/chaos/replicas_in_view.h"
#include "client/cli/chaos/server_scene.h"
#include "common/base/status_macros.h"
#include "common/runtime/event_loop.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {
namespace {

// Promised in docs/OPERATIONS.md.
constexpr double kFailoverSecondsMax = 3;
constexpr double kDipPercentMax = 20;

}  // namespace

absl::StatusOr<Verdict> KillServer(const ExperimentContext& context) {
  constexpr absl::Duration kAfter = absl::Seconds(8);
  COVEY_ASSIGN_OR_RETURN(ServerScene scene, ServerScene::Make(context, {.servers = 3, .lanes = 9}));
  COVEY_RETURN_IF_ERROR(scene.Run(ServerScene::kWarmUp));
  const absl::Time before = MonotonicNow();
  COVEY_RETURN_IF_ERROR(scene.Run(ServerScene::kBefore));
  COVEY_ASSIGN_OR_RETURN(const proto::StatusReply status, scene.cluster().GetStatus());
  const std::string victim = "server-0";
  const std::vector<const LedgerLoad::Lane*> headed =
      LanesHeadedBy(victim, status.view(), scene.load().lanes());
  std::vector<const LedgerLoad::Lane*> apart;
  for (const auto& lane : scene.load().lanes()) {
    const std::vector<std::string> holders = HoldersOf(status.view(), *lane);
    if (std::find(holders.begin(), holders.end(), victim) == holders.end()) {
      apart.push_back(lane.get());
    }
  }
  context.say(absl::StrCat("killing ", victim, ", the head of ", headed.size(), " tables"));
  const absl::Time fault = MonotonicNow();
  scene.cluster().Signal(victim, SIGKILL);
  COVEY_RETURN_IF_ERROR(scene.Run(kAfter));

  Verdict verdict{.experiment = "kill-server",
                  .setting = absl::StrCat("one of three servers killed (SIGKILL) while pushes go "
                                          "to 9 tables of two replicas each")};
  verdict.promises.push_back({.what = "until pushes to its shards are acknowledged again",
                              .measured = LongestGapSeconds(headed, fault, fault + kAfter),
                              .bound = kFailoverSecondsMax,
                              .unit = "s"});
  if (!apart.empty()) {
    verdict.promises.push_back(
        {.what = "dip of the shards it did not hold",
         .measured = DipPercent(apart, before, fault, fault, fault + absl::Seconds(3)),
         .bound = kDipPercentMax,
         .unit = "%"});
  }
  COVEY_RETURN_IF_ERROR(AddLedgerPromises(scene.load(), verdict));
  const absl::StatusOr<proto::StatusReply> after = scene.cluster().GetStatus();
  if (after.ok()) {
    verdict.notes.emplace_back("replicas", HasReplicas(after->view())
                                               ? "whole again on the servers that are left"
                                               : "not whole yet");
  }
  return verdict;
}

}  // namespace covey::cli
