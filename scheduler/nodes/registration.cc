// SPDX-License-Identifier: Apache-2.0
#include "scheduler/nodes/registration.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/cluster/limits.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

constexpr size_t kDataKeyBytes = 32;  // of X25519

}  // namespace

absl::Status CheckRegistration(const JobSpec& job, const proto::RegisterRequest& request) {
  if (request.job_name() != job.name) {
    return absl::InvalidArgumentError(
        absl::StrCat("this scheduler runs job '", job.name, "', not '", request.job_name(),
                     "': check the scheduler's address and the job name"));
  }
  if (request.role() != proto::SERVER && request.role() != proto::WORKER &&
      request.role() != proto::CLIENT) {
    return absl::InvalidArgumentError(absl::StrCat("register: role ",
                                                   static_cast<int>(request.role()),
                                                   " is not one of server, worker, client"));
  }
  if (request.rank() < -1) {
    return absl::InvalidArgumentError(
        absl::StrCat("register: rank ", request.rank(), " is neither -1 (any) nor a rank"));
  }
  if (request.labels().size() > kLabelBytesMax || request.host().size() > kNameBytesMax ||
      request.version().size() > kNameBytesMax ||
      request.endpoints_size() > static_cast<int>(kEndpointsPerNodeMax)) {
    return absl::InvalidArgumentError(absl::StrCat("register: at most ", kLabelBytesMax,
                                                   " bytes of labels, ", kNameBytesMax,
                                                   " bytes of host name and of version, and ",
                                                   kEndpointsPerNodeMax, " endpoints are allowed"));
  }
  if (!request.data_key().empty() && request.data_key().size() != kDataKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "register: a data key of ", request.data_key().size(), " bytes, not ", kDataKeyBytes));
  }
  for (const std::string& endpoint : request.endpoints()) {
    if (endpoint.size() > kEndpointBytesMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("register: an endpoint has more than ", kEndpointBytesMax, " bytes"));
    }
  }
  if (request.role() == proto::SERVER) {
    const auto& endpoints = request.endpoints();
    if (endpoints.size() < 2 || std::any_of(endpoints.begin() + 1, endpoints.end(),
                                            [](const std::string& e) { return e.empty(); })) {
      return absl::InvalidArgumentError(
          "register: a server needs an endpoint for each of its data loops (1, 2, …)");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> ChooseRank(const JobSpec& job, const proto::ClusterView& view,
                                    const proto::RegisterRequest& request,
                                    absl::Duration retry_after) {
  const proto::Role role = request.role();
  const std::string name = RoleName(role);
  const uint32_t expected = role == proto::SERVER   ? job.servers
                            : role == proto::WORKER ? job.workers()
                                                    : static_cast<uint32_t>(kNodesMax);
  const bool is_bounded = role != proto::CLIENT && !job.elastic;
  const uint32_t ranks = is_bounded ? expected : static_cast<uint32_t>(kNodesMax);
  const auto full = [&](absl::string_view why) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job is full: '", job.name, "' expects ", expected, " ", name, "s (ranks from 0): ", why,
        "; start the scheduler with more ", name, "s or stop the other one"));
  };
  if (role == proto::WORKER && !job.elastic && !view.groups().empty()) {
    return full("its groups have formed, and it is not elastic");
  }
  if (request.rank() >= 0) {
    const uint32_t rank = static_cast<uint32_t>(request.rank());
    if (rank >= ranks) return full(absl::StrCat("there is no rank ", rank));
    const proto::Node* holder = FindHolder(view, role, rank);
    if (holder == nullptr || holder->state() != proto::Node::ALIVE) return rank;
    return absl::AlreadyExistsError(absl::StrCat(
        "rank ", rank, " is held by ", Describe(*holder),
        ": stop that process, or give this one another rank; if that one has crashed, its rank is "
        "free in ",
        absl::FormatDuration(retry_after), " at most"));
  }
  std::vector<bool> held(ranks, false);
  for (const proto::Node& node : view.nodes()) {
    if (node.role() == role && node.state() == proto::Node::ALIVE && node.rank() < ranks) {
      held[node.rank()] = true;
    }
  }
  const auto free = std::find(held.begin(), held.end(), false);
  if (free != held.end()) return static_cast<uint32_t>(free - held.begin());
  return full("all ranks are held by live nodes");
}

}  // namespace covey::scheduler
