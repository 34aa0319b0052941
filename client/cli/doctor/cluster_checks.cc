// SPDX-License-Identifier: Apache-2.0
#include "client/cli/doctor/cluster_checks.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/console/figures.h"
#include "client/cli/status/at_risk.h"
#include "client/cli/status/replication.h"
#include "client/cli/status/status_view.h"
#include "common/cluster/topology.h"

namespace covey::cli {
namespace {

using Level = Finding::Level;
using Kind = PortAnswer::Kind;

// Three heartbeats.
constexpr uint64_t kSilentMs = 1500;

Finding Failure(std::string check, std::string seen, std::string remedy) {
  return {Level::kFailure, std::move(check), std::move(seen), std::move(remedy)};
}

Finding Warning(std::string check, std::string seen, std::string remedy) {
  return {Level::kWarning, std::move(check), std::move(seen), std::move(remedy)};
}

Finding Ok(std::string check, std::string seen) {
  return {Level::kOk, std::move(check), std::move(seen), ""};
}

// Why no scheduler answers, by what its port does.
Finding Explain(const ClusterFacts::Port& port, const ClusterFacts& facts) {
  const std::string at = absl::StrCat(port.owner, ": ");
  switch (port.answer.kind) {
    case Kind::kUnresolved:
      return Failure("names", absl::StrCat(at, "the name is not known: ", port.answer.reason),
                     "correct --scheduler, DNS or /etc/hosts");
    case Kind::kRefused:
      return Failure("scheduler", absl::StrCat(at, "nothing listens there: ", port.answer.reason),
                     "start the scheduler, or correct the port");
    case Kind::kTimedOut:
    case Kind::kUnreachable:
      return Failure("scheduler", absl::StrCat(at, "it cannot be reached: ", port.answer.reason),
                     "open the port in firewalls between here and there");
    case Kind::kOpen:
      break;
  }
  switch (ProtocolOf(port.answer.greeting)) {
    case PortProtocol::kZeroMq:
      return Failure("scheduler", absl::StrCat(at, "the data port of a node is there"),
                     "give the port of the scheduler, its --port");
    case PortProtocol::kOther:
      return Failure("scheduler", absl::StrCat(at, "another program is there"),
                     "give the port of the scheduler, its --port");
    case PortProtocol::kGrpc:
      if (facts.tls.empty()) break;
      return Failure("security",
                     absl::StrCat(at, "it serves without TLS, and you show a certificate"),
                     "leave --tls out, or start the scheduler with --tls");
    case PortProtocol::kSilent:
      if (!facts.tls.empty()) break;
      return Failure("security", absl::StrCat(at, "it waits for TLS, and you show no certificate"),
                     "give --tls DIR; covey certificates issue makes DIR");
  }
  return Failure("scheduler", std::string(facts.status.status().message()),
                 facts.tls.empty() ? "look at the scheduler's log"
                                   : absl::StrCat("compare the certificates of both ends: covey "
                                                  "certificates show ",
                                                  facts.tls));
}

void CheckNoAnswer(const ClusterFacts& facts, Findings& findings) {
  const absl::Status& status = facts.status.status();
  if (absl::StrContains(status.message(), "stands by")) {
    findings.push_back(Failure("scheduler", std::string(status.message()),
                               "give the addresses of all schedulers, separated by commas"));
  } else if (!absl::IsUnavailable(status)) {
    findings.push_back(
        Failure("scheduler", std::string(status.message()), "do what the scheduler's answer says"));
  } else {
    for (const ClusterFacts::Port& port : facts.schedulers) {
      findings.push_back(Explain(port, facts));
    }
  }
}

void CheckStandbys(const ClusterFacts& facts, Findings& findings) {
  for (const ClusterFacts::Port& port : facts.schedulers) {
    if (port.answer.kind == Kind::kOpen) continue;
    findings.push_back(Warning("schedulers",
                               absl::StrCat(port.owner, " is not there: ", port.answer.reason),
                               "start it: it is to take over when the leading one fails"));
  }
}

void CheckVersionAndSecurity(const proto::StatusReply& status, Findings& findings) {
  if (status.at_risk().durability().empty()) {
    findings.push_back(Warning("versions", "the scheduler is of an earlier version than covey",
                               "run the same version everywhere; see covey --version"));
  }
  std::map<std::string, std::vector<std::string>> nodes_of;
  for (const proto::Node& node : status.view().nodes()) {
    if (node.state() == proto::Node::ALIVE) nodes_of[node.version()].push_back(node.name());
  }
  if (nodes_of.size() > 1) {
    std::vector<std::string> seen;
    for (const auto& [version, nodes] : nodes_of) {
      seen.push_back(
          absl::StrCat(version.empty() ? "before 0.2.0" : version, ": ", nodes.front(),
                       nodes.size() == 1 ? "" : absl::StrCat(" and ", nodes.size() - 1, " more")));
    }
    findings.push_back(Warning(
        "versions", absl::StrCat("nodes are of different versions: ", absl::StrJoin(seen, "; ")),
        "finish the upgrade; two versions work together when one is the release after the "
        "other"));
  }
  findings.push_back(
      status.insecure()
          ? Warning("insecure", "everybody who reaches the scheduler is served",
                    "give the processes of the job --tls; docs/SECURITY.md says how")
          : Ok("insecure", "the scheduler has certificates, or only this host reaches it"));
}

void CheckNodes(const proto::StatusReply& status, Findings& findings) {
  const size_t before = findings.size();
  for (const std::string& problem : Problems(status)) {
    if (absl::StartsWith(problem, "table '")) {
      findings.push_back(Failure("replicas", problem, "wait for repair, or start more servers"));
    } else {
      findings.push_back(Failure("nodes", problem, "start another process in its place"));
    }
  }
  if (!status.view().waiting_for().empty()) {
    findings.push_back(Warning("nodes", absl::StrCat("waiting for ", status.view().waiting_for()),
                               "start them, or look at their logs"));
  }
  for (const proto::NodeStatus& node : status.nodes()) {
    if (node.silent_ms() < kSilentMs) continue;
    for (const proto::Node& of : status.view().nodes()) {
      if (of.id() != node.node() || of.state() != proto::Node::ALIVE) continue;
      findings.push_back(
          Warning("silent",
                  absl::StrCat(of.name(), " on ", of.host(), " was last heard ",
                               ShowSeconds(static_cast<double>(node.silent_ms()) / 1000), " ago"),
                  "look at the load and the network of its host"));
    }
  }
  const uint32_t servers = ServersStaying(status.view());
  for (const proto::Table& table : status.view().tables()) {
    const Replication replication = ReplicationOf(table, servers);
    if (replication.target >= replication.wanted) continue;
    findings.push_back(
        Warning("replicas",
                absl::StrCat("table '", table.spec().name(), "' is to have ", replication.wanted,
                             " replicas, and there are ", servers, " servers"),
                absl::StrCat("start servers, so that there are at least ", replication.wanted)));
  }
  if (findings.size() == before) {
    findings.push_back(Ok("nodes", "none is dead, silent or missing, and no shard lacks replicas"));
  }
}

void CheckPorts(const ClusterFacts& facts, Findings& findings) {
  size_t open = 0;
  for (const ClusterFacts::Port& port : facts.nodes) {
    if (port.answer.kind == Kind::kOpen) {
      ++open;
      continue;
    }
    const bool is_local = absl::StartsWith(port.endpoint, "ipc://");
    findings.push_back(Failure(
        "data-ports",
        absl::StrCat(port.owner, " cannot be reached from here at ", port.endpoint, ": ",
                     port.answer.reason),
        is_local ? "put sockets where both see them: PrivateTmp of a unit, and containers, have a "
                   "/tmp of their own"
                 : "check --data-host of the node, and firewalls between here and there"));
  }
  if (open == facts.nodes.size() && open > 0) {
    findings.push_back(Ok("data-ports", absl::StrCat("all ", open, " answer from here")));
  }
}

// This machine cuts a stream into packets that the other end takes. A switch in between that takes
// smaller ones may drop them: then small messages pass and tensors do not.
void CheckPackets(const ClusterFacts& facts, Findings& findings) {
  std::set<uint32_t> sizes;
  std::map<std::string, uint32_t> smaller;
  uint32_t mtu = 0;
  for (const ClusterFacts::Port& port : facts.nodes) {
    if (port.answer.mtu == 0) continue;
    sizes.insert(port.answer.packet_bytes_max);
    if (port.answer.packet_bytes_max >= port.answer.mtu) continue;
    smaller[port.owner] = port.answer.packet_bytes_max;
    mtu = port.answer.mtu;
  }
  if (sizes.empty()) return;
  if (smaller.empty()) {
    findings.push_back(Ok(
        "mtu", absl::StrCat("nodes take packets of ", ShowCount(*sizes.begin()),
                            sizes.size() == 1 ? "" : " and more", " bytes, as this machine does")));
    return;
  }
  const auto& [owner, bytes] = *smaller.begin();
  findings.push_back(Warning(
      "mtu",
      absl::StrCat("this machine sends packets of ", ShowCount(mtu), " bytes, and ", owner,
                   smaller.size() == 1 ? "" : absl::StrCat(" and ", smaller.size() - 1, " more"),
                   " takes at most ", ShowCount(bytes)),
      absl::StrCat("give all hosts and switches of the job's network one MTU: ip link set dev "
                   "DEVICE mtu ",
                   bytes)));
}

void CheckLabels(const proto::ClusterView& view, Findings& findings) {
  std::set<std::string> hosts;
  std::set<std::string> labels;
  std::vector<std::string> without;
  size_t nodes = 0;
  for (const proto::Node& node : view.nodes()) {
    if (node.state() != proto::Node::ALIVE) continue;
    if (node.role() != proto::SERVER && node.role() != proto::WORKER) continue;
    ++nodes;
    hosts.insert(node.host());
    labels.insert(node.labels());
    const TopologyPath path = ParseTopologyPath(node.labels());
    if (path.zone().empty() && path.rack().empty()) without.push_back(node.name());
  }
  if (hosts.size() < 2) return;
  const std::string remedy =
      "give each process --labels ZONE/RACK/HOST, or COVEY_ZONE, COVEY_RACK "
      "and NODE_NAME";
  if (labels.size() == 1) {
    findings.push_back(
        Warning("labels",
                absl::StrCat("nodes on ", hosts.size(), " hosts have the same label '",
                             *labels.begin(), "', so replicas are not kept apart"),
                remedy));
  } else if (!without.empty() && without.size() < nodes) {
    findings.push_back(Warning(
        "labels", absl::StrCat("others name a rack, but not ", absl::StrJoin(without, ", ")),
        remedy));
  } else if (!without.empty()) {
    findings.push_back(Ok("labels", "no node names a rack; groups measure their links"));
  } else {
    findings.push_back(
        Ok("labels", absl::StrCat(labels.size(), " places on ", hosts.size(), " hosts")));
  }
}

void CheckSnapshots(const proto::StatusReply& status, Findings& findings) {
  const proto::AtRisk& at_risk = status.at_risk();
  if (absl::StartsWith(at_risk.durability(), "flushed") && at_risk.snapshot().empty() &&
      at_risk.updates() > 0) {
    findings.push_back(Failure("snapshots", DurabilityLine(at_risk),
                               "look at the store's folder, and at the events: covey events"));
  } else if (at_risk.flush_is_behind()) {
    findings.push_back(Warning("snapshots", DurabilityLine(at_risk),
                               "choose a longer interval of flushed, or a faster store"));
  }
  if (status.snapshots().empty()) return;
  const proto::SnapshotStatus& newest = *status.snapshots().rbegin();
  if (newest.state() != proto::SnapshotStatus::FAILED) return;
  findings.push_back(Warning("snapshots",
                             absl::StrCat("the newest snapshot failed: ", newest.reason()),
                             "repair the store, then run: covey snapshot create"));
}

}  // namespace

Findings CheckCluster(const ClusterFacts& facts) {
  Findings findings;
  if (!facts.was_asked) {
    findings.push_back({Level::kSkipped, "scheduler", "not asked without a valid certificate", ""});
    return findings;
  }
  if (!facts.status.ok()) {
    CheckNoAnswer(facts, findings);
    return findings;
  }
  const proto::StatusReply& status = *facts.status;
  const std::string& job = status.view().job_name();
  findings.push_back(
      Ok("scheduler", absl::StrCat("leads job ", job, ", epoch ", status.view().epoch(), ", up ",
                                   ShowSeconds(static_cast<double>(status.uptime_ms()) / 1000))));
  CheckStandbys(facts, findings);
  if (!facts.job.empty() && facts.job != job) {
    findings.push_back(Failure("job",
                               absl::StrCat("the scheduler leads job ", job, ", not ", facts.job),
                               "give the address of the scheduler of your job, or correct --job"));
  }
  CheckVersionAndSecurity(status, findings);
  CheckNodes(status, findings);
  CheckPorts(facts, findings);
  CheckPackets(facts, findings);
  CheckLabels(status.view(), findings);
  CheckSnapshots(status, findings);
  return findings;
}

}  // namespace covey::cli
