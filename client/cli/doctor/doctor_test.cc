// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/doctor/cluster_checks.h"
#include "client/cli/doctor/findings_view.h"
#include "client/cli/doctor/machine_checks.h"
#include "client/cli/doctor/machine_facts.h"
#include "client/cli/doctor/port_probe.h"
#include "client/cli/testing/status_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Kind = PortAnswer::Kind;

// "fail open-files: REMEDY" of all that is not ok.
std::vector<std::string> Wrong(const Findings& findings) {
  std::vector<std::string> wrong;
  for (const Finding& finding : findings) {
    if (finding.level == Finding::Level::kOk) continue;
    const bool failed = finding.level == Finding::Level::kFailure;
    wrong.push_back(absl::StrCat(failed ? "fail " : "warn ", finding.check, ": ", finding.remedy));
  }
  return wrong;
}

MachineFacts GoodMachine() {
  return {.clock_is_synchronized = true,
          .open_files_max = 65536,
          .free_memory_bytes = uint64_t{8} << 30,
          .huge_pages = "madvise",
          .cores = 4,
          .shared_memory_bytes = uint64_t{1} << 30,
          .receive_buffer_bytes = 6291456,
          .send_buffer_bytes = 4194304};
}

std::vector<std::string> WrongOf(const MachineFacts& facts) {
  return Wrong(CheckMachine(facts, {}));
}

TEST(MachineChecksTest, AGoodMachineHasNoWarning) {
  EXPECT_THAT(WrongOf(GoodMachine()), IsEmpty());
  EXPECT_THAT(WrongOf({}), IsEmpty()) << "a machine that does not tell";
}

TEST(MachineChecksTest, EachWrongSettingHasItsLineAndRemedy) {
  MachineFacts facts = GoodMachine();
  facts.clock_is_synchronized = false;
  EXPECT_THAT(WrongOf(facts), ElementsAre("warn clock: start chrony or systemd-timesyncd"));

  const std::string files =
      "open-files: raise the hard limit: LimitNOFILE=65536 in a unit, ulimit "
      "-Hn, --ulimit nofile of a container";
  facts = GoodMachine();
  facts.open_files_max = 4096;
  EXPECT_THAT(WrongOf(facts), ElementsAre("warn " + files));
  facts.open_files_max = 1000;
  EXPECT_THAT(WrongOf(facts), ElementsAre("fail " + files));

  facts = GoodMachine();
  facts.free_memory_bytes = 1000;
  EXPECT_THAT(WrongOf(facts),
              ElementsAre("fail memory: add servers on other hosts, or end other programs here"));

  facts = GoodMachine();
  facts.group_memory_bytes = 1000;
  EXPECT_THAT(WrongOf(facts), ElementsAre("fail memory: raise the limit of the control group: "
                                          "MemoryMax= of a unit, --memory of a container, limits "
                                          "of a pod"));

  facts = GoodMachine();
  facts.huge_pages = "never";
  EXPECT_THAT(WrongOf(facts), ElementsAre("warn huge-pages: echo madvise > "
                                          "/sys/kernel/mm/transparent_hugepage/enabled"));

  facts = GoodMachine();
  facts.cpu_quota = 1.5;
  EXPECT_THAT(WrongOf(facts), ElementsAre("warn cpu: raise the quota of the control group "
                                          "(CPUQuota= of a unit, --cpus of a container, limits of "
                                          "a pod), or start servers with --loops 1"));

  facts = GoodMachine();
  facts.shared_memory_bytes = uint64_t{64} << 20;
  EXPECT_THAT(WrongOf(facts), ElementsAre("warn namespaces: --shm-size 1g of a container, or an "
                                          "emptyDir of medium Memory in a pod"));

  facts = GoodMachine();
  facts.receive_buffer_bytes = 212992;
  EXPECT_THAT(WrongOf(facts),
              ElementsAre("warn socket-buffers: raise them, and leave net.ipv4.tcp_moderate_rcvbuf "
                          "at 1: sysctl -w 'net.ipv4.tcp_rmem=4096 131072 6291456'"));
  facts.send_buffer_bytes = 65536;
  EXPECT_THAT(WrongOf(facts),
              ElementsAre("warn socket-buffers: raise them, and leave net.ipv4.tcp_moderate_rcvbuf "
                          "at 1: sysctl -w 'net.ipv4.tcp_rmem=4096 131072 6291456' "
                          "'net.ipv4.tcp_wmem=4096 131072 6291456'"));

  facts = GoodMachine();
  facts.folders = {{.path = "/logs", .free_bytes = 1000, .bytes = 2000}};
  EXPECT_THAT(
      WrongOf(facts),
      ElementsAre("fail disk: free room there, or keep fewer snapshots (--snapshots-kept)"));

  facts = GoodMachine();
  facts.credentials = {{.folder = "me", .problems = {}, .left = absl::Hours(20)}};
  EXPECT_THAT(WrongOf(facts), ElementsAre("warn certificates: renew it: covey certificates issue, "
                                          "with the same --out"));
}

TEST(MachineFactsTest, ReadsSizesOfSocketBuffers) {
  EXPECT_EQ(ReadSocketBuffer("4096\t131072\t6291456\n", BufferGrowth::kGrows), 6291456u);
  EXPECT_EQ(ReadSocketBuffer("4096\t131072\t6291456\n", BufferGrowth::kStays), 131072u);
  EXPECT_EQ(ReadSocketBuffer("", BufferGrowth::kGrows), std::nullopt);
  EXPECT_EQ(ReadSocketBuffer("4096 x y", BufferGrowth::kGrows), std::nullopt);
}

// A cluster without anything wrong.
ClusterFacts GoodCluster() {
  proto::StatusReply status = StatusForTests();
  for (proto::Node& node : *status.mutable_view()->mutable_nodes()) {
    if (node.state() == proto::Node::DEAD) node.set_state(proto::Node::LEFT);
    node.set_host("h");
  }
  status.mutable_view()->mutable_groups()->RemoveLast();
  status.mutable_view()->mutable_tables(0)->mutable_spec()->set_durability(proto::MEMORY);
  status.mutable_at_risk()->set_durability("replicated");
  ClusterFacts facts{.status = std::move(status)};
  facts.schedulers = {{.owner = "s:1", .endpoint = "s:1", .answer = {.kind = Kind::kOpen}}};
  facts.nodes = {{.owner = "server-0", .endpoint = "tcp://h:1", .answer = {.kind = Kind::kOpen}}};
  return facts;
}

// Lookups of several names end at the same moment, now and then.
TEST(PortProbeTest, LooksUpSeveralNamesManyTimes) {
  const std::vector<std::string> endpoints(8, "127.0.0.1:1");
  for (int i = 0; i < 500; ++i) {
    const auto answers = ProbePorts(endpoints, absl::Seconds(10), absl::ZeroDuration());
    for (const PortAnswer& answer : answers) ASSERT_EQ(Kind::kRefused, answer.kind);
  }
}

TEST(ClusterChecksTest, AGoodClusterHasNoWarning) {
  EXPECT_THAT(Wrong(CheckCluster(GoodCluster())), IsEmpty());
}

TEST(ClusterChecksTest, EachMistakeInReachingTheSchedulerHasItsLineAndRemedy) {
  ClusterFacts facts = GoodCluster();
  facts.status = absl::UnavailableError("no scheduler answers");
  PortAnswer& answer = facts.schedulers[0].answer;
  const auto wrong = [&] { return Wrong(CheckCluster(facts)); };
  answer.kind = Kind::kUnresolved;
  EXPECT_THAT(wrong(), ElementsAre("fail names: correct --scheduler, DNS or /etc/hosts"));
  answer.kind = Kind::kRefused;
  EXPECT_THAT(wrong(), ElementsAre("fail scheduler: start the scheduler, or correct the port"));
  answer.kind = Kind::kTimedOut;
  EXPECT_THAT(wrong(), ElementsAre("fail scheduler: open the port in firewalls between here and "
                                   "there"));
  answer = {.kind = Kind::kOpen, .greeting = std::string("\xff\0\0", 3)};
  EXPECT_THAT(wrong(), ElementsAre("fail scheduler: give the port of the scheduler, its --port"));
  answer.greeting = "";
  EXPECT_THAT(wrong(), ElementsAre("fail security: give --tls DIR; covey certificates issue makes "
                                   "DIR"));
  answer.greeting = std::string("\0\0\x12\4", 4);
  EXPECT_THAT(wrong(), ElementsAre("fail scheduler: look at the scheduler's log"));
  facts.tls = "me";
  EXPECT_THAT(wrong(), ElementsAre("fail security: leave --tls out, or start the scheduler with "
                                   "--tls"));
  facts.status = absl::UnavailableError("scheduler at s:1: stands by");
  EXPECT_THAT(wrong(), ElementsAre("fail scheduler: give the addresses of all schedulers, "
                                   "separated by commas"));
}

TEST(ClusterChecksTest, EachMistakeOfAClusterHasItsLineAndRemedy) {
  ClusterFacts facts = GoodCluster();
  const auto wrong = [&] { return Wrong(CheckCluster(facts)); };
  facts.job = "another";
  EXPECT_THAT(wrong(), ElementsAre("fail job: give the address of the scheduler of your job, or "
                                   "correct --job"));

  facts = GoodCluster();
  facts.status->clear_at_risk();
  EXPECT_THAT(wrong(), ElementsAre("warn versions: run the same version everywhere; see covey "
                                   "--version"));

  facts = GoodCluster();
  facts.status->mutable_view()->mutable_nodes(1)->set_version("0.3.0");
  EXPECT_THAT(wrong(), ElementsAre("warn versions: finish the upgrade; two versions work together "
                                   "when one is the release after the other"));

  facts = GoodCluster();
  facts.status->set_insecure(true);
  EXPECT_THAT(wrong(), ElementsAre("warn insecure: give the processes of the job --tls; "
                                   "docs/SECURITY.md says how"));

  facts = GoodCluster();
  facts.status->mutable_nodes(0)->set_silent_ms(2000);
  EXPECT_THAT(wrong(), ElementsAre("warn silent: look at the load and the network of its host"));

  facts = GoodCluster();
  facts.status->mutable_view()->mutable_nodes(2)->set_state(proto::Node::DEAD);
  EXPECT_THAT(wrong(), ElementsAre("fail nodes: start another process in its place"));

  facts = GoodCluster();
  facts.status->mutable_view()->mutable_tables(0)->mutable_shards(0)->clear_chain();
  EXPECT_THAT(wrong(), ElementsAre("fail replicas: wait for repair, or start more servers"));

  facts = GoodCluster();
  facts.status->mutable_view()->mutable_tables(0)->mutable_spec()->set_durability(
      proto::REPLICATED);
  EXPECT_THAT(wrong(), ElementsAre("warn replicas: start servers, so that there are at least 2"));

  facts = GoodCluster();
  facts.nodes[0].answer.kind = Kind::kRefused;
  EXPECT_THAT(wrong(), ElementsAre("fail data-ports: check --data-host of the node, and firewalls "
                                   "between here and there"));
  facts.nodes[0].endpoint = "ipc:///tmp/x";
  EXPECT_THAT(wrong(), ElementsAre("fail data-ports: put sockets where both see them: PrivateTmp "
                                   "of a unit, and containers, have a /tmp of their own"));

  facts = GoodCluster();
  facts.nodes[0].answer.mtu = 9000;
  facts.nodes[0].answer.packet_bytes_max = 9000;
  EXPECT_THAT(wrong(), IsEmpty());
  facts.nodes.push_back(facts.nodes[0]);
  facts.nodes[1].owner = "server-1";
  facts.nodes[1].answer.packet_bytes_max = 1500;
  EXPECT_THAT(wrong(), ElementsAre("warn mtu: give all hosts and switches of the job's network one "
                                   "MTU: ip link set dev DEVICE mtu 1500"));

  facts = GoodCluster();
  const std::string labels =
      "warn labels: give each process --labels ZONE/RACK/HOST, or "
      "COVEY_ZONE, COVEY_RACK and NODE_NAME";
  EXPECT_THAT(wrong(), IsEmpty());
  proto::ClusterView& view = *facts.status->mutable_view();
  view.mutable_nodes(0)->set_host("other");
  EXPECT_THAT(wrong(), ElementsAre(labels)) << "one node names its rack";
  for (proto::Node& node : *view.mutable_nodes()) node.set_labels("z/r/h");
  EXPECT_THAT(wrong(), ElementsAre(labels)) << "all are the same";

  facts = GoodCluster();
  facts.status->mutable_at_risk()->set_durability("flushed:2s");
  facts.status->mutable_at_risk()->set_updates(7);
  EXPECT_THAT(wrong(), ElementsAre("fail snapshots: look at the store's folder, and at the "
                                   "events: covey events"));
  facts = GoodCluster();
  facts.status->add_snapshots()->set_state(proto::SnapshotStatus::FAILED);
  EXPECT_THAT(wrong(),
              ElementsAre("warn snapshots: repair the store, then run: covey snapshot create"));
}

TEST(FindingsViewTest, ShowsEvidenceAndRemedy) {
  const Findings findings = {{.check = "clock", .seen = "synchronized"},
                             {.level = Finding::Level::kFailure,
                              .check = "disk",
                              .seen = "/x: full",
                              .remedy = "free room"}};
  EXPECT_EQ(FindingsText(findings),
            "ok    clock         synchronized\n"
            "fail  disk          /x: full; free room\n"
            "1 fail, 0 warn, 1 ok\n");
  const auto json = nlohmann::json::parse(FindingsJson(findings));
  EXPECT_EQ(json["failures"], 1);
  EXPECT_EQ(json["findings"][1]["remedy"], "free room");
  EXPECT_TRUE(cli::HasFailure(findings));
}

}  // namespace
}  // namespace covey::cli
