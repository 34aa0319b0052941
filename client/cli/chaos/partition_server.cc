// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/chaos/chaos_cluster.h"
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
constexpr double kPartitionSecondsMax = 5;
constexpr absl::Duration kConvergeMax = absl::Seconds(10);

constexpr absl::Duration kCutOff = absl::Seconds(8);
// By then the replies that a server sent before it was cut off have arrived.
constexpr absl::Duration kOnItsWay = absl::Milliseconds(200);

}  // namespace

absl::StatusOr<Verdict> PartitionServer(const ExperimentContext& context) {
  const std::string victim = "server-0";
  COVEY_ASSIGN_OR_RETURN(
      ServerScene scene,
      ServerScene::Make(context, {.servers = 3, .lanes = 9, .detoured = victim}));
  COVEY_RETURN_IF_ERROR(scene.Run(ServerScene::kWarmUp + ServerScene::kBefore));
  COVEY_ASSIGN_OR_RETURN(const proto::StatusReply status, scene.cluster().GetStatus());
  const std::vector<const LedgerLoad::Lane*> headed =
      LanesHeadedBy(victim, status.view(), scene.load().lanes());
  context.say(absl::StrCat("cutting off ", victim, ", the head of ", headed.size(), " tables, for ",
                           absl::FormatDuration(kCutOff)));
  const absl::Time fault = MonotonicNow();
  scene.cluster().Signal(ChaosCluster::kNetwork, SIGSTOP);
  std::optional<absl::Time> replaced;
  // Until this time only the server that was cut off may acknowledge pushes to its shards.
  absl::Time in_office = fault;
  COVEY_RETURN_IF_ERROR(scene.WatchFor(fault + kCutOff, replaced,
                                       [&](const proto::ClusterView& view, absl::Time asked) {
                                         if (!IsAlive(view, victim)) return true;
                                         in_office = asked;
                                         return false;
                                       }));
  COVEY_RETURN_IF_ERROR(scene.Run(fault + kCutOff - MonotonicNow()));
  context.say("healing");
  const absl::Time healed = MonotonicNow();
  scene.cluster().Signal(ChaosCluster::kNetwork, SIGCONT);
  std::optional<absl::Time> converged;
  COVEY_RETURN_IF_ERROR(scene.WatchFor(
      healed + 2 * kConvergeMax, converged, [&](const proto::ClusterView& view, absl::Time) {
        return !scene.cluster().IsRunning(victim) && HasReplicas(view);
      }));
  // Gives messages that the network held back the time to do harm.
  COVEY_RETURN_IF_ERROR(scene.Run(absl::Seconds(2)));

  Verdict verdict{.experiment = "partition",
                  .setting = absl::StrCat(
                      "one of three servers cut off from the scheduler, the clients and the "
                      "servers that call it, for ",
                      absl::FormatDuration(kCutOff),
                      ", while pushes go to 9 tables of two replicas each; it can still call "
                      "its replicas")};
  size_t from_the_cut_off = 0;
  for (const LedgerLoad::Lane* lane : headed) {
    from_the_cut_off += AcknowledgedIn(*lane, fault + kOnItsWay, in_office);
  }
  verdict.promises.push_back({.what = "until pushes to its shards are acknowledged again",
                              .measured = LongestGapSeconds(headed, fault, healed),
                              .bound = kPartitionSecondsMax,
                              .unit = "s"});
  verdict.promises.push_back({.what = "pushes acknowledged by the server that is cut off",
                              .measured = static_cast<double>(from_the_cut_off)});
  verdict.promises.push_back(
      {.what = "after healing, until it has ended and all replicas exist again",
       .measured = converged.has_value() ? absl::ToDoubleSeconds(*converged - healed) : INFINITY,
       .bound = absl::ToDoubleSeconds(kConvergeMax),
       .unit = "s"});
  COVEY_RETURN_IF_ERROR(AddLedgerPromises(scene.load(), verdict));
  verdict.notes.emplace_back("declared dead after",
                             replaced.has_value() ? absl::FormatDuration(absl::Floor(
                                                        *replaced - fault, absl::Milliseconds(1)))
                                                  : "never");
  verdict.notes.emplace_back(victim, scene.cluster().last_line(victim));
  return verdict;
}

}  // namespace covey::cli
