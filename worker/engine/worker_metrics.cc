// SPDX-License-Identifier: Apache-2.0
#include "worker/engine/worker_metrics.h"

#include "absl/strings/string_view.h"
#include "common/metrics/member_metrics.h"

namespace covey::worker {
namespace {

double Number(uint64_t value) { return static_cast<double>(value); }

void AddRequests(const client::Counters& requests, MetricPage& page) {
  const auto count = [&page](absl::string_view name, absl::string_view help, uint64_t value) {
    page.Counter(name, help, Number(value));
  };
  count("covey_worker_requests_repeated_total",
        "Requests of pushes and pulls that were sent again, with or without their bytes.",
        requests.repeats);
  count("covey_worker_requests_refused_total",
        "Replies of servers for which too much waits, or too much is used.", requests.refusals);
  count("covey_worker_requests_damaged_total",
        "Frames that differed from their checksum, here or at a server.", requests.damaged);
  count("covey_worker_pushes_lost_total",
        "Pushes that a server had received, and that never became durable.", requests.lost_pushes);
  constexpr char kBytes[] = "covey_worker_request_bytes_total";
  constexpr char kBytesHelp[] = "Bytes of requests to servers, and of their replies.";
  page.Counter(kBytes, kBytesHelp, Number(requests.bytes_sent), {{"direction", "sent"}});
  page.Counter(kBytes, kBytesHelp, Number(requests.bytes_received), {{"direction", "received"}});
}

}  // namespace

WorkerMetrics WorkerMetrics::Of(absl::Time now, WorkerActor& actor) {
  return {.progress = actor.meter().progress(),
          .seconds = actor.meter().seconds(),
          .step_durations = actor.meter().step_durations(),
          .steps_aside = actor.hybrid().steps_aside(),
          .recoveries = actor.hybrid().recovery().recoveries(),
          .group_members = actor.group().formed() ? actor.group().size() : 0,
          .is_away = actor.is_away(now),
          .operations = actor.client().engine().operations(),
          .impostors = actor.impostors() + actor.client().engine().counters().strangers,
          .requests = actor.client().engine().counters(),
          .push_times = actor.client().engine().push_times()};
}

void WorkerMetrics::AddTo(MetricPage& page) const {
  page.Counter("covey_worker_steps_total", "Steps that the program has reported.",
               Number(progress.step));
  page.Counter("covey_worker_samples_total", "Training examples of these steps.",
               Number(progress.samples));
  constexpr char kSeconds[] = "covey_worker_step_seconds_total";
  constexpr char kSecondsHelp[] =
      "Where the time of steps went: computation, input, waiting for the group, for servers.";
  page.Counter(kSeconds, kSecondsHelp, seconds.computation, {{"part", "computation"}});
  page.Counter(kSeconds, kSecondsHelp, seconds.input, {{"part", "input"}});
  page.Counter(kSeconds, kSecondsHelp, seconds.group, {{"part", "group"}});
  page.Counter(kSeconds, kSecondsHelp, seconds.servers, {{"part", "servers"}});
  page.Histogram("covey_worker_step_duration_seconds", "Durations of steps.", step_durations);
  if (progress.samples > 0) {
    page.Gauge("covey_worker_loss", "Loss per example, of the newest step with examples.",
               progress.loss);
  }
  page.Gauge("covey_worker_staleness_updates",
             "Updates by others between the values of a gradient and its application, mean.",
             progress.staleness);
  page.Counter("covey_worker_steps_aside_total",
               "Steps that continued without this worker's gradient, because it was late.",
               Number(steps_aside));
  page.Counter("covey_worker_recoveries_total",
               "Steps that were repeated because a member had died.", Number(recoveries));
  page.Gauge("covey_worker_group_members", "Members of this worker's group; 0 = it is in none.",
             group_members);
  page.Gauge("covey_worker_is_away", "1 while the program takes no steps on purpose.",
             is_away ? 1 : 0);
  page.Gauge("covey_worker_operations", "Pushes and pulls that have not ended.",
             Number(operations));
  page.Counter("covey_worker_messages_from_impostors_total",
               "Messages in the name of a node, sent by another process; they are dropped.",
               Number(impostors));
  AddRequests(requests, page);
  page.Histogram("covey_worker_push_seconds",
                 "From the beginning of a push to a shard until it is durable.", push_times);
}

std::vector<ReadyCondition> WorkerConditions(absl::Time now, WorkerActor& actor) {
  std::vector<ReadyCondition> conditions = MemberConditions(actor.client().member(), now);
  conditions.push_back({.name = "group",
                        .holds = actor.group().formed() && actor.group().ready(),
                        .why = "its group has not formed, or its members have not met yet"});
  return conditions;
}

}  // namespace covey::worker
