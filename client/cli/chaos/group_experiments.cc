// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/chaos/chaos_cluster.h"
#include "client/cli/chaos/experiments.h"
#include "client/cli/chaos/rate_series.h"
#include "client/cli/console/figures.h"
#include "common/base/status_macros.h"
#include "common/runtime/event_loop.h"

namespace covey::cli {
namespace {

// Promised in docs/OPERATIONS.md.
constexpr double kOthersPercentMin = 95;
constexpr double kReformSecondsMax = 5;

constexpr uint32_t kGroups = 3;
constexpr uint32_t kMembers = 2;
constexpr absl::Duration kStartMax = absl::Seconds(20);
constexpr absl::Duration kWarmUp = absl::Seconds(3);
constexpr absl::Duration kBefore = absl::Seconds(14);
constexpr absl::Duration kAfter = absl::Seconds(14);
constexpr absl::Duration kPiece = absl::Seconds(4);
constexpr absl::Duration kPoll = absl::Milliseconds(100);

// The newest report among a group's members, and its time. Reports come twice a second.
struct Report {
  absl::Time at;
  uint64_t step = 0;
};

// The progress of each group at one moment.
struct Moment {
  absl::Time at;
  std::map<uint32_t, Report> groups;
};

class GroupScene {
 public:
  static absl::StatusOr<GroupScene> Make(const ExperimentContext& context) {
    GroupScene scene;
    scene.options_.servers = 2;
    scene.options_.server_loops = 1;
    scene.options_.groups = kGroups;
    scene.options_.workers_per_group = kMembers;
    scene.options_.job = "chaos";
    // This experiment is not about slow members.
    scene.options_.stragglers = StragglerRung::kOff;
    scene.options_.program = {context.worker_binary, "--steps", "1000000", "--tensors", "2",
                              "--tensor-kib", "16", "--group-batch", "8",
                              // Steps of 80 ms, so that the cost of synchronizing them, which
                              // depends on the load of this machine, is a small part.
                              "--milliseconds-per-sample", "20", "--contract", "async"};
    context.say(absl::StrCat("starting ", kGroups, " groups of ", kMembers,
                             " workers that train, and 2 servers"));
    COVEY_ASSIGN_OR_RETURN(scene.cluster_, ChaosCluster::Start(scene.options_, context.binaries));
    COVEY_RETURN_IF_ERROR(scene.AwaitTraining());
    return scene;
  }

  ChaosCluster& cluster() { return *cluster_; }

  absl::StatusOr<Moment> Look() {
    cluster_->Pump();
    COVEY_ASSIGN_OR_RETURN(view_, cluster_->GetStatus());
    Moment moment{.at = MonotonicNow()};
    for (const proto::Group& group : view_.view().groups()) {
      Report& report = moment.groups[group.id()];
      for (const proto::NodeStatus& node : view_.nodes()) {
        const auto& members = group.members();
        if (std::find(members.begin(), members.end(), node.node()) == members.end() ||
            node.progress().step() <= report.step) {
          continue;
        }
        report = {.at = moment.at - absl::Milliseconds(node.silent_ms()),
                  .step = node.progress().step()};
      }
    }
    return moment;
  }
  // Polls often; `take` may end the watch by returning true.
  template <typename Take>
  absl::Status Watch(absl::Duration time, Take take) {
    const absl::Time until = MonotonicNow() + time;
    while (MonotonicNow() < until) {
      COVEY_ASSIGN_OR_RETURN(const Moment moment, Look());
      if (take(moment)) break;
      COVEY_RETURN_IF_ERROR(ChaosCluster::Pause(kPoll));
    }
    return absl::OkStatus();
  }
  // Steps per second of each group within `time`: the median over its pieces, so that a short
  // disturbance on this machine does not count.
  absl::StatusOr<std::map<uint32_t, double>> Rates(absl::Duration time) {
    std::map<uint32_t, RateSeries> series;
    std::map<uint32_t, uint64_t> seen;
    COVEY_RETURN_IF_ERROR(Watch(time, [&](const Moment& moment) {
      for (const auto& [id, report] : moment.groups) {
        uint64_t& step = seen[id];
        // The first report may be older than `time`.
        if (step != 0 && report.step > step) {
          series[id].Add(report.at, static_cast<double>(report.step));
        }
        step = std::max(step, report.step);
      }
      return false;
    }));
    std::map<uint32_t, double> rates;
    for (const auto& [id, one] : series) rates[id] = one.Median(kPiece);
    return rates;
  }
  // The worker's group; 0 = none.
  uint32_t GroupOf(absl::string_view worker) const {
    for (const proto::Node& node : view_.view().nodes()) {
      if (node.name() != worker) continue;
      for (const proto::Group& group : view_.view().groups()) {
        const auto& members = group.members();
        if (std::find(members.begin(), members.end(), node.id()) != members.end()) {
          return group.id();
        }
      }
    }
    return 0;
  }
  std::vector<std::string> MembersOf(uint32_t group) const {
    std::vector<std::string> names;
    for (uint32_t rank = 0; rank < kGroups * kMembers; ++rank) {
      const std::string name = absl::StrCat("worker-", rank);
      if (GroupOf(name) == group) names.push_back(name);
    }
    return names;
  }

 private:
  absl::Status AwaitTraining() {
    bool trains = false;
    COVEY_RETURN_IF_ERROR(Watch(kStartMax, [&](const Moment& moment) {
      trains = moment.groups.size() == kGroups &&
               std::all_of(moment.groups.begin(), moment.groups.end(),
                           [](const auto& entry) { return entry.second.step > 0; });
      return trains;
    }));
    if (trains) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("the workers did not train within ",
                                               absl::FormatDuration(kStartMax), ": ",
                                               cluster_->last_line("worker-0")));
  }

  RunOptions options_;
  std::unique_ptr<ChaosCluster> cluster_;
  proto::StatusReply view_;
};

void AddOthers(const std::map<uint32_t, double>& before, const std::map<uint32_t, double>& after,
               uint32_t victim, Verdict& verdict) {
  double worst = INFINITY;
  for (const auto& [group, rate] : before) {
    if (group == victim || rate <= 0) continue;
    const auto now = after.find(group);
    const double percent = now == after.end() ? 0 : now->second / rate * 100;
    worst = std::min(worst, percent);
    verdict.notes.emplace_back(
        absl::StrCat("group ", group),
        absl::StrCat(ShowNumber(rate), " steps/s before, ",
                     ShowNumber(now == after.end() ? 0 : now->second), " after"));
  }
  verdict.promises.push_back({.what = "median rate of the other groups, the slowest of them",
                              .measured = std::isfinite(worst) ? worst : NAN,
                              .bound = kOthersPercentMin,
                              .side = Promise::Side::kAtLeast,
                              .unit = "%"});
}

}  // namespace

absl::StatusOr<Verdict> FreezeWorker(const ExperimentContext& context) {
  COVEY_ASSIGN_OR_RETURN(GroupScene scene, GroupScene::Make(context));
  COVEY_RETURN_IF_ERROR(scene.Watch(kWarmUp, [](const Moment&) { return false; }));
  COVEY_ASSIGN_OR_RETURN(const auto before, scene.Rates(kBefore));
  const std::string frozen = "worker-1";
  const uint32_t group = scene.GroupOf(frozen);
  context.say(absl::StrCat("freezing ", frozen, " of group ", group));
  COVEY_ASSIGN_OR_RETURN(const Moment last, scene.Look());
  const absl::Time fault = MonotonicNow();
  scene.cluster().Signal(frozen, SIGSTOP);
  // When its group has re-formed with one member less, and makes steps again.
  std::optional<absl::Time> trains;
  uint64_t step_when_formed = 0;
  std::map<uint32_t, double> after;
  COVEY_RETURN_IF_ERROR(scene.Watch(kAfter, [&](const Moment& moment) {
    const auto now = moment.groups.find(group);
    if (now == moment.groups.end() || scene.GroupOf(frozen) == group) return false;
    if (step_when_formed == 0) step_when_formed = now->second.step;
    if (now->second.step > step_when_formed) trains = moment.at;
    return trains.has_value();
  }));
  COVEY_ASSIGN_OR_RETURN(after, scene.Rates(kAfter));

  Verdict verdict{.experiment = "freeze-worker",
                  .setting =
                      "one of two members of one of three groups frozen (SIGSTOP), "
                      "under async"};
  verdict.promises.push_back(
      {.what = "until its group trains again without it",
       .measured = trains.has_value() ? absl::ToDoubleSeconds(*trains - fault) : INFINITY,
       .bound = kReformSecondsMax,
       .unit = "s"});
  AddOthers(before, after, group, verdict);
  scene.cluster().Signal(frozen, SIGCONT);
  const absl::Time thawed = MonotonicNow();
  COVEY_RETURN_IF_ERROR(scene.Watch(
      absl::Seconds(5), [&](const Moment&) { return !scene.cluster().IsRunning(frozen); }));
  verdict.notes.emplace_back(
      "thawed", scene.cluster().IsRunning(frozen)
                    ? "still running"
                    : absl::StrCat("it ended after ",
                                   ShowSeconds(absl::ToDoubleSeconds(MonotonicNow() - thawed)),
                                   ": ", scene.cluster().last_line(frozen)));
  return verdict;
}

absl::StatusOr<Verdict> KillGroup(const ExperimentContext& context) {
  COVEY_ASSIGN_OR_RETURN(GroupScene scene, GroupScene::Make(context));
  COVEY_RETURN_IF_ERROR(scene.Watch(kWarmUp, [](const Moment&) { return false; }));
  COVEY_ASSIGN_OR_RETURN(const auto before, scene.Rates(kBefore));
  const uint32_t group = scene.GroupOf("worker-0");
  context.say(absl::StrCat("killing all of group ", group));
  for (const std::string& member : scene.MembersOf(group)) {
    scene.cluster().Signal(member, SIGKILL);
  }
  COVEY_ASSIGN_OR_RETURN(const auto after, scene.Rates(kAfter));
  Verdict verdict{.experiment = "kill-group",
                  .setting = "all members of one of three groups killed (SIGKILL), under async"};
  AddOthers(before, after, group, verdict);
  return verdict;
}

}  // namespace covey::cli
