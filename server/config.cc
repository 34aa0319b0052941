// SPDX-License-Identifier: Apache-2.0
#include "server/config.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/cluster/topology.h"
#include "common/net/data_transport.h"
#include "common/net/host_port.h"
#include "common/runtime/exposure.h"

namespace covey::server {
namespace {

absl::Status Bad(absl::string_view setting, const absl::AlphaNum& value,
                 absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat("--", setting, " is '", value.Piece(), "'; choose ", allowed));
}

bool ArePlaces(const std::vector<absl::string_view>& places) {
  return std::all_of(places.begin(), places.end(), IsHostPort);
}

absl::Status CheckAdvertised(const Config& config) {
  if (config.advertise_data.empty()) return absl::OkStatus();
  const auto bad = [&config](absl::string_view allowed) {
    return Bad("advertise-data", config.advertise_data, allowed);
  };
  if (config.transport == "ipc") return bad("nothing: it is not for --transport ipc");
  const std::vector<absl::string_view> places = absl::StrSplit(config.advertise_data, ',');
  if (places.size() != config.loops) return bad("one HOST:PORT for each of --loops");
  if (!ArePlaces(places)) return bad("HOST:PORT[,HOST:PORT], with ports 1 to 65535");
  return absl::OkStatus();
}

}  // namespace

absl::Status Config::Validate() const {
  if (!ArePlaces(absl::StrSplit(scheduler, ','))) {
    return Bad("scheduler", scheduler,
               "HOST:PORT, several with commas between, or set COVEY_SCHEDULER");
  }
  if (job.empty() || job.size() > kNameBytesMax) {
    return Bad("job", job, absl::StrCat("a name of 1 to ", kNameBytesMax, " bytes"));
  }
  if (rank < -1 || rank >= static_cast<int32_t>(kNodesMax)) {
    return Bad("rank", rank, absl::StrCat("-1 (any) to ", kNodesMax - 1));
  }
  if (const absl::Status status = CheckTopologyLabels(labels); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--labels is '", labels, "', which ", status.message()));
  }
  if (!IsDataTransport(transport)) return Bad("transport", transport, kDataTransportNames);
  if (table_memory != "host" && table_memory != "cuda") {
    return Bad("table-memory", table_memory, "host or cuda");
  }
  if (data_host.empty()) return Bad("data-host", data_host, "an address of this machine");
  if (transport != "ipc") {
    COVEY_RETURN_IF_ERROR(CheckExposure({.setting = "--data-host",
                                         .host = data_host,
                                         .is_secured = !tls.empty(),
                                         .is_insecure = insecure}));
  }
  if (loops >= kEndpointsPerNodeMax) {
    return Bad("loops", loops, absl::StrCat("0 (one per core) to ", kEndpointsPerNodeMax - 1));
  }
  if (data_port > 65535 || (data_port != 0 && data_port + loops > 65536)) {
    return Bad("data-port", data_port,
               "0 (any), or so that the ports of all loops are below 65536");
  }
  COVEY_RETURN_IF_ERROR(CheckAdvertised(*this));
  if (spin < absl::ZeroDuration() || spin > absl::Milliseconds(1)) {
    return Bad("spin", absl::FormatDuration(spin), "0 to 1ms");
  }
  if (spare_bytes_max < (1 << 20) || spare_bytes_max > (1 << 30)) {
    return Bad("spare-bytes-max", spare_bytes_max, "1MiB to 1GiB");
  }
  if (queued_bytes_max < (32 << 20) || queued_bytes_max > (uint64_t{64} << 30)) {
    return Bad("queued-bytes-max", queued_bytes_max, "32MiB to 64GiB");
  }
  if (rate_max != 0 && (rate_max < (64 << 10) || rate_max > (uint64_t{1} << 40))) {
    return Bad("rate-max", rate_max, "0 (no limit), or 64KiB to 1TiB, in a second");
  }
  if (table_bytes_max != 0 &&
      (table_bytes_max < (1 << 20) || table_bytes_max > (uint64_t{64} << 40))) {
    return Bad("table-bytes-max", table_bytes_max,
               "0 (by the memory of the process), or 1MiB to 64TiB");
  }
  if (drain_deadline < absl::ZeroDuration() || drain_deadline > absl::Hours(1)) {
    return Bad("drain-deadline", absl::FormatDuration(drain_deadline), "0 to 1h");
  }
  if (join_deadline < absl::Milliseconds(100) || join_deadline > absl::Hours(1)) {
    return Bad("join-deadline", absl::FormatDuration(join_deadline), "100ms to 1h");
  }
  return absl::OkStatus();
}

}  // namespace covey::server
