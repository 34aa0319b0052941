// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/exposure.h"

#include <sys/resource.h>

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/base/log.h"
#include "common/runtime/process_main.h"

namespace covey {
namespace {

constexpr absl::Duration kWarnEvery = absl::Minutes(1);

}  // namespace

bool IsLoopback(absl::string_view host) {
  const bool is_number = host.find_first_not_of("0123456789.") == absl::string_view::npos;
  return host == "localhost" || host == "::1" || host == "[::1]" ||
         (is_number && absl::StartsWith(host, "127."));
}

absl::Status CheckExposure(const Exposure& exposure) {
  if (exposure.is_secured && exposure.is_insecure) {
    return absl::InvalidArgumentError(
        "--insecure and --tls contradict each other; leave one of them out");
  }
  if (exposure.is_secured || exposure.is_insecure || IsLoopback(exposure.host)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      exposure.setting, " is ", exposure.host,
      ", which other hosts reach, and this process has no credentials: everybody there could take "
      "part in the job. Give --tls DIR ('covey certificates issue' makes DIR), or --insecure where "
      "everybody on the network is trusted"));
}

bool IsOutOfReach(absl::string_view host, absl::string_view schedulers) {
  if (!IsLoopback(host)) return false;
  const std::vector<absl::string_view> places = absl::StrSplit(schedulers, ',');
  return std::any_of(places.begin(), places.end(), [](absl::string_view place) {
    return !IsLoopback(place.substr(0, place.rfind(':')));
  });
}

void WarnIfOutOfReach(absl::string_view setting, absl::string_view host,
                      absl::string_view schedulers) {
  if (!IsOutOfReach(host, schedulers)) return;
  LogWarning("out_of_reach",
             {{"scheduler", schedulers},
              {"text", absl::StrCat(setting, " is ", host,
                                    ", which other hosts do not reach; if processes of the job run "
                                    "on others, give it an address of this host")}});
}

void AllowManyConnections() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void WarnOfExposure(absl::string_view address) {
  LogWarning("insecure", {{"address", address},
                          {"text", "everybody who reaches this address takes part in the job"}});
}

std::optional<int> WaitForTerminationInsecurely(absl::string_view address,
                                                const std::function<void()>& on_hangup) {
  while (true) {
    WarnOfExposure(address);
    if (const std::optional<int> signal = WaitForTermination(kWarnEvery, on_hangup)) return signal;
  }
}

}  // namespace covey
