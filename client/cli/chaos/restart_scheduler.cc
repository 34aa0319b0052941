// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/chaos/experiments.h"
#include "client/cli/chaos/lane_figures.h"
#include "client/cli/chaos/ledger_promises.h"
#include "client/cli/chaos/rate_series.h"
#include "client/cli/chaos/server_scene.h"
#include "client/cli/console/figures.h"
#include "common/base/status_macros.h"
#include "common/runtime/event_loop.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {
namespace {

// Promised in docs/OPERATIONS.md.
constexpr double kOutageLossPercentMax = 2;
constexpr double kRestartSecondsMax = 3;

}  // namespace

absl::StatusOr<Verdict> RestartScheduler(const ExperimentContext& context) {
  // Phases with and without the scheduler alternate, and each outage is compared with the phases
  // directly before and after it, so that other load on this machine affects both alike.
  constexpr int kOutages = 6;
  constexpr absl::Duration kThere = absl::Milliseconds(3500);
  constexpr absl::Duration kAway = absl::Milliseconds(3500);
  COVEY_ASSIGN_OR_RETURN(ServerScene scene, ServerScene::Make(context, {.servers = 2, .lanes = 6}));
  COVEY_RETURN_IF_ERROR(scene.Run(ServerScene::kWarmUp));
  std::vector<double> with, without;
  const auto measure = [&scene](absl::Duration time, std::vector<double>& rates) {
    const absl::Time start = MonotonicNow();
    const absl::Status status = scene.Run(time);
    rates.push_back(MedianOf(RatesIn(scene.load().lanes(), start, start + time)));
    return status;
  };
  std::optional<absl::Duration> longest = absl::ZeroDuration();
  absl::Status last;
  COVEY_RETURN_IF_ERROR(measure(kThere, with));
  for (int outage = 1; outage <= kOutages && longest.has_value(); ++outage) {
    context.say(absl::StrCat("killing the scheduler (", outage, " of ", kOutages, ")"));
    scene.cluster().Signal("scheduler", SIGKILL);
    COVEY_RETURN_IF_ERROR(measure(kAway, without));
    const absl::Time back = MonotonicNow();
    COVEY_RETURN_IF_ERROR(scene.cluster().StartAgain("scheduler"));
    std::optional<absl::Time> serves;
    COVEY_RETURN_IF_ERROR(scene.RunUntil(back + absl::Seconds(10), [&] {
      const absl::StatusOr<proto::StatusReply> status = scene.cluster().GetStatus();
      last = status.status();
      if (status.ok() && status->view().tables_size() > 0) serves = MonotonicNow();
      return serves.has_value();
    }));
    longest = serves.has_value() ? std::optional<absl::Duration>(std::max(*longest, *serves - back))
                                 : std::nullopt;
    COVEY_RETURN_IF_ERROR(measure(kThere, with));
  }

  std::vector<double> lost;
  for (size_t i = 0; i < without.size() && i + 1 < with.size(); ++i) {
    const double usual = (with[i] + with[i + 1]) / 2;
    lost.push_back(usual > 0 ? 1 - without[i] / usual : 1);
  }
  Verdict verdict{.experiment = "restart-scheduler",
                  .setting = absl::StrCat("the scheduler killed (SIGKILL) ", kOutages,
                                          " times and away for ", absl::FormatDuration(kAway),
                                          " each while pushes go to 6 tables on two servers")};
  verdict.promises.push_back(
      {.what = "median pushes per second lost while it was away",
       .measured = MedianOf(with) > 0 ? std::max(0.0, MedianOf(lost) * 100) : NAN,
       .bound = kOutageLossPercentMax,
       .unit = "%"});
  verdict.promises.push_back(
      {.what = "until it serves again, with all its state, the longest",
       .measured = longest.has_value() ? absl::ToDoubleSeconds(*longest) : INFINITY,
       .bound = kRestartSecondsMax,
       .unit = "s"});
  verdict.notes.emplace_back("pushes per second",
                             absl::StrCat(ShowNumber(MedianOf(with)), " with it, ",
                                          ShowNumber(MedianOf(without)), " without"));
  if (!longest.has_value()) verdict.notes.emplace_back("scheduler", std::string(last.message()));
  COVEY_RETURN_IF_ERROR(AddLedgerPromises(scene.load(), verdict));
  return verdict;
}

}  // namespace covey::cli
