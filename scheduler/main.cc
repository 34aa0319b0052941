// The scheduler's process: puts the actor on a loop between gRPC and the log file. Read top to
// bottom.

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/cluster/straggler_ladder.h"
#include "common/cluster/view.h"
#include "common/runtime/config_file.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/process_main.h"
#include "scheduler/config.h"
#include "scheduler/file_log.h"
#include "scheduler/grpc_service.h"
#include "scheduler/port_file.h"
#include "scheduler/prober.h"
#include "scheduler/scheduler_actor.h"

namespace covey::scheduler {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

// The disk of the configuration, what it remembers, and how it answers.
struct Disk {
  std::unique_ptr<MessagePort> port;
  std::optional<proto::LogRecord> recovered;
  std::function<void(std::function<void(Message)>)> set_receiver;
};

absl::StatusOr<Disk> OpenDisk(const Config& config) {
  if (config.log_file.empty()) {
    auto log = std::make_unique<NoLog>();
    NoLog& disk = *log;
    return Disk{.port = std::move(log),
                .recovered = std::nullopt,
                .set_receiver = [&disk](auto receiver) { disk.SetReceiver(std::move(receiver)); }};
  }
  COVEY_ASSIGN_OR_RETURN(auto log, FileLog::Open({.path = config.log_file}));
  std::optional<proto::LogRecord> recovered = log->recovered();
  if (recovered && recovered->view().job_name() != config.job_name) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the scheduler log ", config.log_file, " belongs to job '", recovered->view().job_name(),
        "', not '", config.job_name, "': name another file, or that job"));
  }
  FileLog& disk = *log;
  return Disk{.port = std::move(log),
              .recovered = std::move(recovered),
              .set_receiver = [&disk](auto receiver) { disk.SetReceiver(std::move(receiver)); }};
}

absl::Status Run(const Config& config) {
  COVEY_ASSIGN_OR_RETURN(Disk disk, OpenDisk(config));
  if (disk.recovered) {
    LogInfo("recovered",
            {{"record", disk.recovered->index()}, {"epoch", disk.recovered->view().epoch()}});
  }
  SchedulerActor actor(config, std::move(disk.recovered));
  actor.OnDecision([](const std::string& text) { LogInfo("decision", {{"text", text}}); });

  Prober prober({});
  EventLoop loop({.job = JobFingerprint(config.job_name),
                  .self = {kSchedulerNode, 0},
                  .incarnation = Incarnation(RandomFromSystem() | 1),
                  .thread_name = "scheduler"},
                 actor, prober);
  absl::Status disk_failure;
  disk.set_receiver([&](Message message) {
    if (const absl::Status status = StatusOf(message); !status.ok() && disk_failure.ok()) {
      disk_failure = status;
      RequestTermination();
    }
    loop.Deliver(std::move(message));
  });
  loop.AddPort({kSchedulerNode, kDiskLoop}, *disk.port);
  loop.AddPort({kSchedulerNode, kProbeLoop}, prober);

  COVEY_ASSIGN_OR_RETURN(
      const std::unique_ptr<GrpcService> service,
      GrpcService::Start({.host = config.host, .port = config.port}, actor, loop));
  loop.SetDefaultPort(*service);
  loop.Start();
  LogInfo(absl::StrCat("listening on ", config.host, ":", service->port()),
          {{"job", config.job_name},
           {"servers", config.servers},
           {"groups", config.groups},
           {"workers", config.workers()}});
  absl::Status outcome;
  if (!config.port_file.empty()) outcome = WritePortFile(config.port_file, service->port());

  if (outcome.ok()) {
    const std::optional<int> signal = WaitForTermination();
    LogInfo("stopping", {{"signal", signal.value_or(0)}});
  }
  service->Shutdown();
  loop.Stop();
  return outcome.ok() ? disk_failure : outcome;
}

void DeclareStragglers(StragglerLadder::Options& stragglers, ConfigFile& options) {
  options.Add(
      "stragglers",
      [&stragglers](absl::string_view text) {
        COVEY_ASSIGN_OR_RETURN(stragglers.highest, ParseStragglerRung(text));
        return absl::OkStatus();
      },
      [&stragglers] { return std::string(StragglerRungName(stragglers.highest)); },
      "how far to go against slow workers, each including the one before: off, observe, shift "
      "(samples to the faster), partial (do not wait for the late), regroup, evict");
  options.Add("straggler-ratio", &stragglers.slow_ratio,
              "a worker is slow that takes so many times the median of its group per sample");
  options.Add("straggler-probation", &stragglers.probation,
              "an evicted worker may try again after so long");
  options.Add("partial-reduce-minimum", &stragglers.partial_minimum,
              "members that a group with late ones waits for; 0 = all that are in time, at least "
              "half");
  options.Add("partial-reduce-grace", &stragglers.partial_grace,
              "how much longer it waits for the others; 0 = half the usual step");
  options.Add("group-members-min", &stragglers.group_members_min,
              "no group gets smaller because of stragglers");
}

void Declare(Config& config, ConfigFile& options) {
  options.Add("job", &config.job_name, "name of the job; everybody who joins must know it");
  options.Add("servers", &config.servers, "servers to wait for");
  options.Add("groups", &config.groups, "groups of workers to form");
  options.Add("workers", &config.workers_per_group, "workers in each group");
  options.Add("heartbeat", &config.heartbeat, "interval at which nodes say that they live");
  options.Add("silence-min", &config.silence_min, "nobody is declared dead after less silence");
  options.Add("restart-grace", &config.restart_grace,
              "time that known nodes have to be heard after a restart");
  options.Add("elastic", &config.elastic,
              "workers that come after the groups have formed are placed, not refused");
  options.Add("placement-wait", &config.placement_wait,
              "a late worker waits so long for others to make a group with, then joins one");
  options.Add("regroup-after", &config.regroup_after,
              "a group goes on without a member so long after it left");
  DeclareStragglers(config.stragglers, options);
  options.Add("contract-fallback", &config.contract_fallback,
              "tables whose momentum asynchrony raises above what they ask for become buffered");
  options.Add("host", &config.host, "address to listen at");
  options.Add("port", &config.port, "port to listen at; 0 = any free one");
  options.Add("port-file", &config.port_file, "file that the chosen port is written to");
  options.Add("log-file", &config.log_file,
              "durable log of decisions, read at a restart; empty = a restart forgets the job");
}

int Main(int argc, char** argv) {
  Config config;
  ConfigFile options("covey_scheduler", "Knows who is in the cluster and who owns what.");
  Declare(config, options);
  if (const std::optional<int> code = options.LoadForMain(argc, argv)) return *code;
  InitProcess("scheduler");
  if (const absl::Status status = config.Validate(); !status.ok()) {
    LogError("bad_configuration", {{"error", status.message()}});
    return kExitUsage;
  }
  if (const absl::Status status = Run(config); !status.ok()) {
    LogError("failed", {{"error", status.message()}});
    return kExitFailed;
  }
  LogInfo("stopped");
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace covey::scheduler

int main(int argc, char** argv) { return covey::scheduler::Main(argc, argv); }
