// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/config/sim_config.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "tests/sim/process/local_clock.h"

namespace covey::sim {

absl::Duration DrawDuration(Random& random, absl::Duration low, absl::Duration high) {
  // Doubles by halves of a bit: exact arithmetic, the same on every machine.
  absl::Duration from = low;
  int doublings = 0;
  for (absl::Duration d = low; d * 2 <= high; d *= 2) ++doublings;
  from *= int64_t{1} << random.Below(static_cast<uint64_t>(doublings) + 1);
  return std::min(high, from * (1 + random.Uniform()));
}

namespace {

// The longest time that a record takes while the disk is slow.
constexpr absl::Duration kLogSlowMax = absl::Seconds(3);

void BeQuiet(SimConfig& config) {
  config.network.tail_chance = config.network.loss = config.network.corruption = 0;
  config.network.retry = config.network.reconnect = 0;
  config.network.queue_messages = kTransportQueueMessagesMax;
  config.inbox_max = kTransportQueueMessagesMax;
  config.fault_share = 0;
}

// In a third of the seeds some servers have a device, so that chains mix both kinds.
void DrawDevices(Random random, SimConfig& config) {
  const bool any = random.Chance(0.35);
  for (size_t i = 0; i < config.servers + config.elasticity.late_servers.size(); ++i) {
    config.has_device.push_back(any && random.Chance(0.5));
  }
  config.device.copy_start = DrawDuration(random, absl::Microseconds(5), absl::Milliseconds(5));
  config.device.copy_byte = DrawDuration(random, absl::Nanoseconds(1), absl::Nanoseconds(64));
}

// In a third of the seeds the disk of the scheduler's log has faults, and the scheduler ends in the
// midst of records. In all of them the log is short, so that it is replaced often.
void DrawLog(Random random, SimConfig& config) {
  SimLog::Options& log = config.log;
  if (random.Chance(0.35) && !config.quiet) {
    log.disk.chance = 0.2 * random.Uniform();
    log.ends = 0.1 * random.Uniform();
  }
  log.disk.slowness = std::max(1.0, absl::FDivDuration(kLogSlowMax, log.disk.delay_max));
  log.file_bytes_max = uint64_t{1 << 10} << random.Below(12);
}

std::string DescribeDevices(const SimConfig& config) {
  std::string devices;
  for (const bool has_device : config.has_device) devices += has_device ? '1' : '0';
  return devices;
}

}  // namespace

SimConfig DrawConfig(Random random, uint32_t groups) {
  const auto duration = [&random](absl::Duration low, absl::Duration high) {
    return DrawDuration(random, low, high);
  };
  SimConfig config;
  config.servers = 1 + static_cast<uint32_t>(random.Below(5));
  config.data_loops = 1 + static_cast<uint32_t>(random.Below(2));

  config.scheduler.job_name = "simulation";
  config.scheduler.servers = config.servers;
  config.scheduler.groups = groups;
  config.scheduler.workers_per_group = 1;
  config.scheduler.placement_wait = duration(absl::Milliseconds(100), absl::Seconds(5));
  config.scheduler.replacement_wait = duration(absl::Milliseconds(100), absl::Seconds(5));
  config.scheduler.heartbeat = duration(absl::Milliseconds(200), absl::Milliseconds(800));
  config.scheduler.silence_min =
      std::max(config.scheduler.heartbeat * 4, duration(absl::Seconds(2), absl::Seconds(6)));
  config.scheduler.restart_grace = duration(absl::Seconds(5), absl::Seconds(20));
  COVEY_CHECK(config.scheduler.Validate().ok());

  config.member.job_name = config.scheduler.job_name;
  config.member.register_deadline = absl::Seconds(60);
  config.member.retry_after = duration(absl::Milliseconds(300), absl::Seconds(3));
  config.member.watch_again_after = duration(absl::Seconds(2), absl::Seconds(20));
  config.client.retry_after = duration(absl::Milliseconds(50), absl::Seconds(2));
  config.client.retry_after_longest = config.client.retry_after * (1 + random.Below(8));
  config.client.bytes_in_flight_max = size_t{256} << random.Below(10);

  NetworkConfig& network = config.network;
  network.delay_min = duration(absl::Microseconds(5), absl::Milliseconds(2));
  network.delay_more = duration(absl::Microseconds(5), absl::Milliseconds(20));
  if (random.Chance(0.5)) network.tail_chance = 0.05 * random.Uniform();
  network.tail = duration(absl::Milliseconds(50), absl::Seconds(3));
  if (random.Chance(0.7)) network.loss = 0.2 * random.Uniform() * random.Uniform();
  if (random.Chance(0.3)) network.corruption = 0.02 * random.Uniform();
  if (random.Chance(0.6)) network.retry = 0.2 * random.Uniform();
  network.codec = static_cast<Codec>(random.Below(3));
  network.queue_messages = 16 << random.Below(9);

  config.reuse_endpoints = random.Chance(0.5);
  config.call_cost_max = duration(absl::Microseconds(1), absl::Milliseconds(1));
  config.log.disk.delay_max = duration(absl::Microseconds(100), absl::Seconds(2));
  config.inbox_max = size_t{64} << random.Below(7);
  config.safety = duration(absl::Seconds(8), absl::Seconds(60));
  // 10 s are promised; deaths are noticed after up to 6 s of silence here, and retries are rarer.
  config.answer = absl::Seconds(30);
  if (random.Chance(0.3)) network.reconnect = 0.01 * random.Uniform() * random.Uniform();
  if (random.Chance(0.5)) config.connection_lost_chance = random.Uniform();
  config.quiet = random.Chance(0.05);
  if (config.quiet) BeQuiet(config);
  config.elasticity = DrawElasticity(random.Split(1), config.servers, config.safety);
  // Drawn from a separate stream, so that seeds older than leases keep their meaning.
  Random of_lease = random.Split(2);
  config.scheduler.lease = DrawDuration(of_lease, absl::Seconds(4), absl::Seconds(60));
  // Whether a process that the scheduler finds gone may still have its lease.
  if (random.Split(6).Chance(0.5)) config.member.host = "another-machine";
  DrawDevices(random.Split(3), config);
  if (!config.quiet) {
    const size_t servers = config.servers + config.elasticity.late_servers.size();
    config.elasticity.terminations =
        DrawTerminations(random.Split(5), static_cast<uint32_t>(servers), config.safety);
  }
  if (random.Split(7).Chance(0.5)) config.clock_drift_max = LocalClock::kDriftMax;
  config.small_limits = random.Split(8).Chance(0.2) && !config.quiet;
  DrawLog(random.Split(9), config);
  Random of_forgery = random.Split(4);
  if (of_forgery.Chance(0.2) && !config.quiet) network.forgery = 0.1 * of_forgery.Uniform();
  return config;
}

std::string Describe(const SimConfig& config) {
  const NetworkConfig& network = config.network;
  return absl::StrCat(
      "servers=", config.servers, " data_loops=", config.data_loops,
      " devices=", DescribeDevices(config), " groups=", config.scheduler.groups,
      " heartbeat=", absl::FormatDuration(config.scheduler.heartbeat),
      " silence_min=", absl::FormatDuration(config.scheduler.silence_min),
      " restart_grace=", absl::FormatDuration(config.scheduler.restart_grace),
      " lease=", absl::FormatDuration(config.scheduler.lease),
      config.member.host.empty() ? "" : " on other machines",
      " client_retry=", absl::FormatDuration(config.client.retry_after),
      " bytes_in_flight=", config.client.bytes_in_flight_max,
      absl::StrFormat(" loss=%.3f corruption=%.3f retry=%.3f tail=%.3f codec=%d", network.loss,
                      network.corruption, network.retry, network.tail_chance,
                      static_cast<int>(network.codec)),
      " delay=", absl::FormatDuration(network.delay_min), "+",
      absl::FormatDuration(network.delay_more), " queue=", network.queue_messages,
      " inbox=", config.inbox_max, " reuse_endpoints=", config.reuse_endpoints ? "yes" : "no",
      absl::StrFormat(" reconnect=%.4f connection_lost=%.2f forgery=%.3f", network.reconnect,
                      config.connection_lost_chance, network.forgery),
      config.clock_drift_max > 0 ? " drifting clocks" : "",
      absl::StrFormat(" log=%s/%.3f/%.3f/%d", absl::FormatDuration(config.log.disk.delay_max),
                      config.log.disk.chance, config.log.ends, config.log.file_bytes_max),
      config.small_limits ? " small limits" : "", config.quiet ? " quiet" : "",
      " safety=", absl::FormatDuration(config.safety), " ", Describe(config.elasticity));
}

}  // namespace covey::sim
