// SPDX-License-Identifier: Apache-2.0

// A network between namespaces with injected faults: one TUN device in each, and a switch in this
// process between them.
//   relay --seed 7 --device relay0 --faults plan.yaml -- NAME=ADDRESS=NAMESPACE_PATH ...
// The caller gives the devices their addresses once "ready" is logged. Times in the file count from
// there. Standard input takes lines: a fault as in common/faults/fault_file.h, in force from now (+
// `at`) on; "heal", which ends all faults; "counts", which logs the packet counts. The relay ends
// when its standard input does.

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/faults/fault_file.h"
#include "common/faults/fault_schedule.h"
#include "common/runtime/config_file.h"
#include "common/runtime/process_main.h"
#include "tests/relay/packet_switch.h"
#include "tests/relay/tun_device.h"

namespace covey::relay {
namespace {

struct Config {
  uint64_t seed = 1;
  std::string device = "relay0";
  std::string faults;
  std::vector<std::string> nodes;
};

// Packets between two checks of the other devices and the clock.
constexpr int kPacketsPerTurn = 64;
constexpr absl::Duration kTurnMax = absl::Milliseconds(100);

class Relay {
 public:
  Relay(std::vector<PacketSwitch::Port> ports, std::vector<TunDevice> devices, uint64_t seed)
      : ports_(ports), devices_(std::move(devices)), switch_(std::move(ports), seed) {}

  // INVALID_ARGUMENT: the fault was not added.
  absl::Status Add(Fault fault) {
    std::vector<std::string> names;
    for (const auto& port : ports_) names.push_back(port.name);
    if (!IsOfNetwork(fault.kind) || fault.kind == FaultKind::kDisconnect) {
      return absl::InvalidArgumentError(
          absl::StrCat("a relay of packets cannot ", FaultKindName(fault.kind)));
    }
    COVEY_RETURN_IF_ERROR(ValidateNames({fault}, names));
    fault.at += absl::Now() - start_;
    plan_.push_back(std::move(fault));
    schedule_ = FaultSchedule(plan_);
    Follow();
    return absl::OkStatus();
  }

  // Runs until standard input ends.
  void Run() {
    std::vector<pollfd> waits;
    for (const TunDevice& device : devices_) waits.push_back({device.descriptor(), POLLIN, 0});
    waits.push_back({STDIN_FILENO, POLLIN, 0});
    fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    while (true) {
      Wait(waits);
      for (size_t i = 0; i < devices_.size(); ++i) {
        if (waits[i].revents != 0) Receive(i);
      }
      Follow();
      for (const auto& delivery : switch_.Due(absl::Now())) {
        devices_[delivery.to].Write(delivery.packet);
      }
      if (waits.back().revents != 0 && !ReadCommands()) return;
    }
  }

 private:
  void Wait(std::vector<pollfd>& waits) {
    const absl::Time now = absl::Now();
    const absl::Time next = std::min(switch_.NextAt(), start_ + schedule_.NextAt());
    const absl::Duration wait = std::clamp(next - now, absl::ZeroDuration(), kTurnMax);
    const timespec timeout = absl::ToTimespec(wait);
    for (pollfd& entry : waits) entry.revents = 0;
    ppoll(waits.data(), waits.size(), &timeout, nullptr);
  }

  void Receive(size_t from) {
    for (int i = 0; i < kPacketsPerTurn; ++i) {
      const absl::string_view packet = devices_[from].Read();
      if (packet.empty()) return;
      switch_.Receive(absl::Now(), from, packet);
    }
  }

  // Applies the faults of this moment.
  void Follow() {
    const absl::Time now = absl::Now();
    if (schedule_.NextAt() > now - start_) return;
    schedule_.Due(now - start_);
    switch_.SetFaults(now, schedule_.InForce());
  }

  // False: there will be no more commands.
  bool ReadCommands() {
    char buffer[4096];
    const ssize_t bytes = read(STDIN_FILENO, buffer, sizeof(buffer));
    if (bytes <= 0) return bytes < 0 && (errno == EAGAIN || errno == EINTR);
    input_.append(buffer, static_cast<size_t>(bytes));
    for (size_t end = input_.find('\n'); end != std::string::npos; end = input_.find('\n')) {
      const std::string line = input_.substr(0, end);
      input_.erase(0, end + 1);
      Obey(line);
    }
    return true;
  }

  void Obey(const std::string& line) {
    if (line == "counts") return LogCounts();
    if (line == "heal") {
      plan_.clear();
      schedule_ = FaultSchedule(plan_);
      switch_.SetFaults(absl::Now(), plan_);
      LogInfo("healed", {});
      return;
    }
    absl::StatusOr<Fault> fault = ParseFault(line);
    const absl::Status status = fault.ok() ? Add(*fault) : fault.status();
    if (status.ok()) {
      LogInfo("accepted", {{"fault", PrintFault(*fault)}});
    } else {
      LogError("refused", {{"line", line}, {"reason", status.message()}});
    }
  }

  void LogCounts() {
    const PacketSwitch::Counts& counts = switch_.counts();
    LogInfo("counts", {{"delivered", counts.delivered},
                       {"blocked", counts.blocked},
                       {"lost", counts.lost},
                       {"overflowed", counts.overflowed},
                       {"duplicated", counts.duplicated},
                       {"corrupted", counts.corrupted},
                       {"unknown", counts.unknown}});
  }

  const absl::Time start_ = absl::Now();
  const std::vector<PacketSwitch::Port> ports_;
  std::vector<TunDevice> devices_;
  PacketSwitch switch_;
  FaultPlan plan_;
  FaultSchedule schedule_{{}};
  std::string input_;
};

absl::Status Run(const Config& config) {
  std::vector<PacketSwitch::Port> ports;
  std::vector<TunDevice> devices;
  for (const std::string& node : config.nodes) {
    const std::vector<std::string> parts = absl::StrSplit(node, '=');
    in_addr address = {};
    if (parts.size() != 3 || inet_pton(AF_INET, parts[1].c_str(), &address) != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", node, "\" is not NAME=ADDRESS=NAMESPACE_PATH"));
    }
    ports.push_back({parts[0], ntohl(address.s_addr)});
    COVEY_ASSIGN_OR_RETURN(TunDevice device, TunDevice::Open(parts[2], config.device));
    devices.push_back(std::move(device));
  }
  FaultPlan plan;
  if (!config.faults.empty()) {
    COVEY_ASSIGN_OR_RETURN(plan, LoadFaultPlan(config.faults));
  }
  Relay relay(std::move(ports), std::move(devices), config.seed);
  for (const Fault& fault : plan) COVEY_RETURN_IF_ERROR(relay.Add(fault));
  LogInfo("ready", {{"nodes", config.nodes.size()}, {"seed", config.seed}});
  relay.Run();
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Config config;
  ConfigFile options("relay", "Passes packets between network namespaces, badly.");
  options.Add("seed", &config.seed, "of what is lost, delayed and flipped");
  options.Add("device", &config.device, "name of the device in each namespace");
  options.Add("faults", &config.faults, "file with faults; empty = none");
  options.TakeRest(&config.nodes, "-- NAME=ADDRESS=NAMESPACE_PATH ...");
  if (const std::optional<int> code = options.LoadForMain(argc, argv)) return *code;
  InitProcess("relay");
  const absl::Status status = Run(config);
  if (!status.ok()) LogError("failed", {{"reason", status.message()}});
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace covey::relay

int main(int argc, char** argv) { return covey::relay::Main(argc, argv); }
