// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/chaos/experiments.h"
#include "client/cli/chaos/ledger_load.h"
#include "client/cli/chaos/rate_series.h"
#include "client/cli/chaos/victim_cluster.h"
#include "client/cli/console/figures.h"
#include "common/base/status_macros.h"
#include "common/runtime/event_loop.h"

namespace covey::cli {
namespace {

// Promises P4, P10 of docs/OPERATIONS.md.
constexpr double kFailoverSecondsMax = 3;
constexpr double kDipPercentMax = 20;
constexpr double kOutageLossPercentMax = 2;
constexpr double kRestartSecondsMax = 3;
// P9.
constexpr double kPartitionSecondsMax = 5;
constexpr absl::Duration kConvergeMax = absl::Seconds(10);

constexpr absl::Duration kWarmUp = absl::Seconds(2);
constexpr absl::Duration kBefore = absl::Seconds(5);
constexpr absl::Duration kCutOff = absl::Seconds(8);
// By then the replies that a server sent before it was cut off have arrived.
constexpr absl::Duration kOnItsWay = absl::Milliseconds(200);
constexpr absl::Duration kStep = absl::Microseconds(200);

// A cluster of servers, and pushes to all of them.
struct Scene {
  RunOptions options;
  std::unique_ptr<VictimCluster> cluster;
  std::unique_ptr<LedgerLoad> load;

  absl::Status Run(absl::Duration time) {
    return RunUntil(MonotonicNow() + time, [] { return false; });
  }
  // Runs until `done`, or `until`.
  template <typename Done>
  absl::Status RunUntil(absl::Time until, Done done) {
    absl::Time next_pump = MonotonicNow();
    while (MonotonicNow() < until && !done()) {
      const absl::Time now = MonotonicNow();
      load->Step(now);
      if (now >= next_pump) {
        cluster->Pump();
        next_pump = now + absl::Milliseconds(20);
      }
      COVEY_RETURN_IF_ERROR(VictimCluster::Pause(kStep));
    }
    return absl::OkStatus();
  }
};

absl::StatusOr<Scene> MakeScene(const Laboratory& laboratory, uint32_t servers, size_t lanes,
                                const std::string& detoured = "") {
  Scene scene;
  scene.options.servers = servers;
  scene.options.server_loops = 1;
  scene.options.job = "chaos";
  laboratory.say(absl::StrCat("starting a scheduler and ", servers, " servers"));
  COVEY_ASSIGN_OR_RETURN(scene.cluster,
                         VictimCluster::Start(scene.options, laboratory.binaries, detoured));
  COVEY_ASSIGN_OR_RETURN(scene.load, LedgerLoad::Start({.scheduler = scene.cluster->address(),
                                                        .job = scene.options.job,
                                                        .lanes = lanes}));
  laboratory.say(absl::StrCat("pushing to ", lanes, " tables, each on two servers"));
  return scene;
}

// Names of the servers that hold the lane's shard; head first.
std::vector<std::string> HoldersOf(const proto::ClusterView& view, const LedgerLoad::Lane& lane) {
  std::vector<std::string> holders;
  for (const proto::Table& table : view.tables()) {
    if (table.id() != lane.table.id.value() || table.shards().empty()) continue;
    for (const proto::Replica& replica : table.shards(0).chain()) {
      for (const proto::Node& node : view.nodes()) {
        if (node.id() == replica.node()) holders.push_back(node.name());
      }
    }
  }
  return holders;
}

bool HasReplicas(const proto::ClusterView& view) {
  for (const proto::Table& table : view.tables()) {
    for (const proto::Shard& shard : table.shards()) {
      if (shard.chain_size() < 2 || shard.chain(1).joining()) return false;
    }
  }
  return true;
}

// By how many percent the rate in [from, to) is below that in [before, fault); at least 0.
double DipPercent(const std::vector<const LedgerLoad::Lane*>& lanes, absl::Time before,
                  absl::Time fault, absl::Time from, absl::Time to) {
  double was = 0, is = 0;
  for (const LedgerLoad::Lane* lane : lanes) {
    was += LedgerLoad::RateOf(*lane, before, fault);
    is += LedgerLoad::RateOf(*lane, from, to);
  }
  return was > 0 ? std::max(0.0, (1 - is / was) * 100) : NAN;
}

// Adds the acknowledged pushes per second of all lanes together, for each short piece of [from,
// to).
void AddRates(const LedgerLoad& load, absl::Time from, absl::Time to, std::vector<double>& rates) {
  constexpr absl::Duration kPiece = absl::Milliseconds(250);
  for (absl::Time start = from; start + kPiece <= to; start += kPiece) {
    double& rate = rates.emplace_back(0);
    for (const auto& lane : load.lanes()) rate += LedgerLoad::RateOf(*lane, start, start + kPiece);
  }
}

absl::Status AddAudit(Scene& scene, Verdict& verdict) {
  COVEY_RETURN_IF_ERROR(scene.load->Finish());
  COVEY_ASSIGN_OR_RETURN(const LedgerLoad::Audit audit, scene.load->Check());
  verdict.promises.push_back(
      {.what = "acknowledged updates lost", .measured = static_cast<double>(audit.lost)});
  verdict.promises.push_back(
      {.what = "updates applied twice", .measured = static_cast<double>(audit.doubled)});
  verdict.promises.push_back(
      {.what = "tables with half an update", .measured = static_cast<double>(audit.torn)});
  verdict.notes.emplace_back("updates acknowledged", ShowCount(audit.acknowledged));
  verdict.notes.emplace_back("pushes that failed", ShowCount(audit.unknown));
  for (const auto& lane : scene.load->lanes()) {
    if (!lane->last_error.empty()) verdict.notes.emplace_back(lane->table.name, lane->last_error);
  }
  return absl::OkStatus();
}

// The longest time without an acknowledgment from `fault` to `end`. Pushes that were in flight when
// the server died may still be acknowledged, so the first acknowledgment means little.
double LongestGapSeconds(const LedgerLoad::Lane& lane, absl::Time fault, absl::Time end) {
  absl::Time last = fault;
  absl::Duration longest;
  for (auto at = std::upper_bound(lane.times.begin(), lane.times.end(), fault);
       at != lane.times.end() && *at < end; ++at) {
    longest = std::max(longest, *at - last);
    last = *at;
  }
  // No acknowledgment until the end is an outage, not a gap.
  return end - last > longest ? INFINITY : absl::ToDoubleSeconds(longest);
}

size_t AcknowledgedIn(const LedgerLoad::Lane& lane, absl::Time from, absl::Time to) {
  const auto first = std::lower_bound(lane.times.begin(), lane.times.end(), from);
  const auto last = std::lower_bound(lane.times.begin(), lane.times.end(), to);
  return first < last ? static_cast<size_t>(last - first) : 0;
}

bool IsAlive(const proto::ClusterView& view, absl::string_view name) {
  return std::any_of(view.nodes().begin(), view.nodes().end(), [name](const proto::Node& node) {
    return node.name() == name && node.state() == proto::Node::ALIVE;
  });
}

// Pushes continue until the scheduler's view satisfies `is_so`, which is polled, or until `until`.
// `seen` is set to the time when it did. `is_so` gets the time at which the view was requested.
template <typename IsSo>
absl::Status WatchFor(Scene& scene, absl::Time until, std::optional<absl::Time>& seen, IsSo is_so) {
  constexpr absl::Duration kAsk = absl::Milliseconds(50);
  absl::Time next = MonotonicNow();
  return scene.RunUntil(until, [&] {
    if (MonotonicNow() < next) return false;
    const absl::Time asked = MonotonicNow();
    next = asked + kAsk;
    const absl::StatusOr<proto::StatusReply> status = scene.cluster->GetStatus();
    if (status.ok() && is_so(status->view(), asked)) seen = MonotonicNow();
    return seen.has_value();
  });
}

}  // namespace

absl::StatusOr<Verdict> KillServer(const Laboratory& laboratory) {
  constexpr absl::Duration kAfter = absl::Seconds(8);
  COVEY_ASSIGN_OR_RETURN(Scene scene, MakeScene(laboratory, /*servers=*/3, /*lanes=*/9));
  COVEY_RETURN_IF_ERROR(scene.Run(kWarmUp));
  const absl::Time before = MonotonicNow();
  COVEY_RETURN_IF_ERROR(scene.Run(kBefore));
  COVEY_ASSIGN_OR_RETURN(const proto::StatusReply status, scene.cluster->GetStatus());
  const std::string victim = "server-0";
  std::vector<const LedgerLoad::Lane*> headed, apart;
  for (const auto& lane : scene.load->lanes()) {
    const std::vector<std::string> holders = HoldersOf(status.view(), *lane);
    if (!holders.empty() && holders[0] == victim) headed.push_back(lane.get());
    if (std::find(holders.begin(), holders.end(), victim) == holders.end()) {
      apart.push_back(lane.get());
    }
  }
  laboratory.say(absl::StrCat("killing ", victim, ", the head of ", headed.size(), " tables"));
  const absl::Time fault = MonotonicNow();
  scene.cluster->Signal(victim, SIGKILL);
  COVEY_RETURN_IF_ERROR(scene.Run(kAfter));

  Verdict verdict{.experiment = "kill-server",
                  .setting = absl::StrCat("one of three servers killed (SIGKILL) while pushes go "
                                          "to 9 tables of two replicas each")};
  double failover = headed.empty() ? NAN : 0;
  for (const LedgerLoad::Lane* lane : headed) {
    failover = std::max(failover, LongestGapSeconds(*lane, fault, fault + kAfter));
  }
  verdict.promises.push_back({.what = "until pushes to its shards are acknowledged again",
                              .measured = failover,
                              .bound = kFailoverSecondsMax,
                              .unit = "s"});
  if (!apart.empty()) {
    verdict.promises.push_back(
        {.what = "dip of the shards it did not hold",
         .measured = DipPercent(apart, before, fault, fault, fault + absl::Seconds(3)),
         .bound = kDipPercentMax,
         .unit = "%"});
  }
  COVEY_RETURN_IF_ERROR(AddAudit(scene, verdict));
  const absl::StatusOr<proto::StatusReply> after = scene.cluster->GetStatus();
  if (after.ok()) {
    verdict.notes.emplace_back("replicas", HasReplicas(after->view())
                                               ? "whole again on the servers that are left"
                                               : "not whole yet");
  }
  return verdict;
}

absl::StatusOr<Verdict> PartitionServer(const Laboratory& laboratory) {
  const std::string victim = "server-0";
  COVEY_ASSIGN_OR_RETURN(Scene scene, MakeScene(laboratory, /*servers=*/3, /*lanes=*/9, victim));
  COVEY_RETURN_IF_ERROR(scene.Run(kWarmUp + kBefore));
  COVEY_ASSIGN_OR_RETURN(const proto::StatusReply status, scene.cluster->GetStatus());
  std::vector<const LedgerLoad::Lane*> headed;
  for (const auto& lane : scene.load->lanes()) {
    const std::vector<std::string> holders = HoldersOf(status.view(), *lane);
    if (!holders.empty() && holders[0] == victim) headed.push_back(lane.get());
  }
  laboratory.say(absl::StrCat("cutting off ", victim, ", the head of ", headed.size(),
                              " tables, for ", absl::FormatDuration(kCutOff)));
  const absl::Time fault = MonotonicNow();
  scene.cluster->Signal(VictimCluster::kNetwork, SIGSTOP);
  std::optional<absl::Time> replaced;
  // Until this time only the server that was cut off may acknowledge pushes to its shards.
  absl::Time in_office = fault;
  COVEY_RETURN_IF_ERROR(
      WatchFor(scene, fault + kCutOff, replaced, [&](const auto& view, absl::Time asked) {
        if (!IsAlive(view, victim)) return true;
        in_office = asked;
        return false;
      }));
  COVEY_RETURN_IF_ERROR(scene.Run(fault + kCutOff - MonotonicNow()));
  laboratory.say("healing");
  const absl::Time healed = MonotonicNow();
  scene.cluster->Signal(VictimCluster::kNetwork, SIGCONT);
  std::optional<absl::Time> converged;
  COVEY_RETURN_IF_ERROR(
      WatchFor(scene, healed + 2 * kConvergeMax, converged, [&](const auto& view, absl::Time) {
        return !scene.cluster->IsRunning(victim) && HasReplicas(view);
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
  double failover = headed.empty() ? NAN : 0;
  size_t from_the_cut_off = 0;
  for (const LedgerLoad::Lane* lane : headed) {
    failover = std::max(failover, LongestGapSeconds(*lane, fault, healed));
    from_the_cut_off += AcknowledgedIn(*lane, fault + kOnItsWay, in_office);
  }
  verdict.promises.push_back({.what = "until pushes to its shards are acknowledged again",
                              .measured = failover,
                              .bound = kPartitionSecondsMax,
                              .unit = "s"});
  verdict.promises.push_back({.what = "pushes acknowledged by the server that is cut off",
                              .measured = static_cast<double>(from_the_cut_off)});
  verdict.promises.push_back(
      {.what = "after healing, until it has ended and all replicas exist again",
       .measured = converged.has_value() ? absl::ToDoubleSeconds(*converged - healed) : INFINITY,
       .bound = absl::ToDoubleSeconds(kConvergeMax),
       .unit = "s"});
  COVEY_RETURN_IF_ERROR(AddAudit(scene, verdict));
  verdict.notes.emplace_back("declared dead after",
                             replaced.has_value() ? absl::FormatDuration(absl::Floor(
                                                        *replaced - fault, absl::Milliseconds(1)))
                                                  : "never");
  verdict.notes.emplace_back(victim, scene.cluster->last_line(victim));
  return verdict;
}

absl::StatusOr<Verdict> RestartScheduler(const Laboratory& laboratory) {
  // Phases with and without the scheduler alternate, and each outage is compared with the phases
  // directly before and after it, so that other load on this machine affects both alike.
  constexpr int kOutages = 6;
  constexpr absl::Duration kThere = absl::Milliseconds(3500);
  constexpr absl::Duration kAway = absl::Milliseconds(3500);
  COVEY_ASSIGN_OR_RETURN(Scene scene, MakeScene(laboratory, /*servers=*/2, /*lanes=*/6));
  COVEY_RETURN_IF_ERROR(scene.Run(kWarmUp));
  std::vector<double> with, without;
  const auto measure = [&scene](absl::Duration time, std::vector<double>& rates) {
    const absl::Time start = MonotonicNow();
    const absl::Status status = scene.Run(time);
    std::vector<double> pieces;
    AddRates(*scene.load, start, start + time, pieces);
    rates.push_back(MedianOf(std::move(pieces)));
    return status;
  };
  std::optional<absl::Duration> longest = absl::ZeroDuration();
  absl::Status last;
  COVEY_RETURN_IF_ERROR(measure(kThere, with));
  for (int outage = 1; outage <= kOutages && longest.has_value(); ++outage) {
    laboratory.say(absl::StrCat("killing the scheduler (", outage, " of ", kOutages, ")"));
    scene.cluster->Signal("scheduler", SIGKILL);
    COVEY_RETURN_IF_ERROR(measure(kAway, without));
    const absl::Time back = MonotonicNow();
    COVEY_RETURN_IF_ERROR(scene.cluster->StartAgain("scheduler"));
    std::optional<absl::Time> serves;
    COVEY_RETURN_IF_ERROR(scene.RunUntil(back + absl::Seconds(10), [&] {
      const absl::StatusOr<proto::StatusReply> status = scene.cluster->GetStatus();
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
  COVEY_RETURN_IF_ERROR(AddAudit(scene, verdict));
  return verdict;
}

}  // namespace covey::cli
