// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/cluster/cluster_file.h"
#include "client/cli/cluster/cluster_logs.h"
#include "client/cli/cluster/cluster_plan.h"
#include "client/cli/cluster/cluster_up.h"
#include "client/cli/cluster/command_batch.h"
#include "client/cli/cluster/host_script.h"
#include "client/cli/cluster/hosts_view.h"
#include "client/cli/cluster/remote_hosts.h"
#include "client/cli/cluster/shell_words.h"
#include "client/cli/cluster/ssh_commands.h"
#include "client/cli/cluster/start_watch.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// What a shell makes of a line.
std::string Execute(const std::string& shell, const std::string& line) {
  const auto outcomes =
      RunBatch({{.program = {.name = shell, .arguments = {shell, "-c", line}, .environment = {}},
                 .deadline = absl::Seconds(60)}},
               1);
  EXPECT_TRUE(outcomes.ok());
  EXPECT_TRUE(outcomes->front().ok()) << outcomes->front().error;
  return outcomes->front().output;
}

TEST(ShellWordsTest, AShellReadsEachWordAsItWas) {
  std::string all;
  for (int letter = 1; letter < 256; ++letter) all.push_back(static_cast<char>(letter));
  const std::vector<std::string> words = {"",
                                          "plain/word-1.2,3:4@5+6_7",
                                          "two words",
                                          "'",
                                          "''\\'",
                                          "a'b\"c`d",
                                          "$(x)",
                                          "${HOME}",
                                          "~root",
                                          "*",
                                          "; touch /x;",
                                          "a\nb\n",
                                          "-n",
                                          "\\",
                                          "\\\\'",
                                          "#no",
                                          "a=b",
                                          "{1,2}",
                                          "!!",
                                          "&& false",
                                          "\t",
                                          "%s\\n",
                                          all};
  std::string expected;
  for (const std::string& word : words) absl::StrAppend(&expected, "[", word, "]");
  for (const std::string shell : {"sh", "bash"}) {
    EXPECT_EQ(Execute(shell, absl::StrCat("printf '[%s]' ", ShellLine(words))), expected) << shell;
    const std::string inner = absl::StrCat("printf '[%s]' ", ShellLine(words));
    EXPECT_EQ(Execute(shell, absl::StrCat("exec sh -c ", ShellWord(inner))), expected) << shell;
  }
  EXPECT_EQ(ShellLine({"ssh", "--", "node-1", "a b"}), "ssh -- node-1 'a b'");
}

constexpr char kFile[] = R"(job: mnist
folder: /srv/mnist
groups: 2
ssh: {user: me, identity: key, options: [StrictHostKeyChecking=yes], connect_deadline: 3s}
hosts:
  node-1: {address: 10.0.0.1, labels: z/r1}
  node-2: {address: 10.0.0.2, labels: z/r2, user: you, port: 2222, folder: there}
scheduler: {hosts: node-1, port: 7171, flags: [--heartbeat=1s]}
servers:
  - {hosts: [node-1, node-2], flags: [--loops=2]}
workers:
  - hosts: node-2
    count: 2
    program: ./train
    arguments: [--name, it's]
    environment: {THREADS: 1}
)";

ClusterFile Parse(const std::string& text) {
  absl::StatusOr<ClusterFile> file = ParseClusterFile(text, "f");
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? *std::move(file) : ClusterFile();
}

TEST(ClusterFileTest, PlansEachProcessWithItsPlace) {
  const ClusterFile file = Parse(kFile);
  EXPECT_EQ(SchedulerAddresses(file), "10.0.0.1:7171");
  std::vector<std::string> shown;
  for (const PlannedProcess& each : PlanProcesses(file)) {
    shown.push_back(absl::StrCat(each.at, " ", each.name, " ", file.hosts[each.host].name, " ",
                                 each.program, " | ", ShellLine(each.command)));
  }
  const std::string worker =
      "env COVEY_DATA_HOST=10.0.0.2 COVEY_JOB=mnist COVEY_LABELS=z/r2/node-2 COVEY_RANK=";
  const std::string rest =
      " COVEY_SCHEDULER=10.0.0.1:7171 COVEY_TLS=tls/worker THREADS=1 ./train --name "
      "'it'\\''s'";
  // Words with = are quoted.
  for (std::string& line : shown) {
    line.erase(std::remove(line.begin(), line.end(), '\''), line.end());
  }
  std::string plain = rest;
  plain.erase(std::remove(plain.begin(), plain.end(), '\''), plain.end());
  EXPECT_THAT(
      shown,
      ElementsAre(
          "f:8 scheduler-0 node-1 covey_scheduler | covey_scheduler --job=mnist --host=10.0.0.1 "
          "--port=7171 --servers=2 --groups=2 --workers=1 --tls=tls/scheduler --heartbeat=1s",
          "f:10 server-0 node-1 covey_server | covey_server --job=mnist "
          "--scheduler=10.0.0.1:7171 --rank=0 --data-host=10.0.0.1 --labels=z/r1/node-1 "
          "--tls=tls/server --loops=2",
          "f:10 server-1 node-2 covey_server | covey_server --job=mnist "
          "--scheduler=10.0.0.1:7171 --rank=1 --data-host=10.0.0.2 --labels=z/r2/node-2 "
          "--tls=tls/server --loops=2",
          absl::StrCat("f:12 worker-0 node-2 ./train | ", worker, "0", plain),
          absl::StrCat("f:12 worker-1 node-2 ./train | ", worker, "1", plain)));
}

TEST(ClusterFileTest, GroupsMayBeLeftToTheScheduler) {
  std::string text = kFile;
  text.replace(text.find("groups: 2"), 9, "groups: auto");
  EXPECT_THAT(ShellLine(PlanProcesses(Parse(text))[0].command),
              HasSubstr("'--groups=auto' '--workers=2'"));
}

TEST(ClusterFileTest, AShortFileIsEnough) {
  const ClusterFile file =
      Parse("job: j\nscheduler: {hosts: 10.0.0.1}\nservers: {hosts: 10.0.0.1}\n");
  const auto processes = PlanProcesses(file);
  ASSERT_EQ(processes.size(), 2u);
  EXPECT_EQ(file.hosts[0].folder, "covey-j");
  EXPECT_EQ(ShellLine(processes[0].command),
            "covey_scheduler '--job=j' '--host=10.0.0.1' '--port=7070' '--servers=1' "
            "'--tls=tls/scheduler'");
  const ClusterFile open =
      Parse("job: j\ninsecure: true\nscheduler: {hosts: 10.0.0.1}\nservers: {hosts: 10.0.0.1}\n");
  EXPECT_THAT(PlanProcesses(open)[1].command, Contains("--insecure"));
}

TEST(ClusterFileTest, EachMistakeNamesItsLineAndRemedy) {
  const std::string good = "scheduler: {hosts: a}\nservers: {hosts: a}\n";
  const std::pair<std::string, std::string> mistakes[] = {
      {"job: [", "f:1: not YAML: "},
      {"- a", "f:1: the file is no list of `key: value`; its keys are: job,"},
      {good, "f:1: the job has no name; add job: NAME"},
      {"job: a/b\n" + good, "f:1: "},
      {"job: j\n\njop: x\n" + good, "f:3: unknown key \"jop\" in the file; did you mean \"job\"?"},
      {"job: j\njob: k\n" + good, "f:2: \"job\" is given twice in the file"},
      {"job: j\nfolder: a b\n" + good, "f:2: folder \"a b\" is refused; give one of"},
      {"job: j\nfolder: /\n" + good, "f:2: folder \"/\" is refused"},
      {"job: j\nfolder: x/../y\n" + good, "f:2: folder \"x/../y\" is refused"},
      {"job: j\nfolder: -x\n" + good, "f:2: folder \"-x\" is refused"},
      {"job: j\ngroups: two\n" + good, "f:2: groups: \"two\" is "},
      {"job: \"j\\0\"\n" + good, "f:1: it holds a zero byte"},
      {"job: j\ntls: t\ninsecure: true\n" + good, "f:2: tls and insecure exclude each other"},
      {"job: j\nprograms: /x\ncopy: [y]\n" + good, "f:3: copied programs go into"},
      {"job: j\nssh: {prot: 22}\n" + good,
       "f:2: unknown key \"prot\" in ssh; did you mean \"port\"?"},
      {"job: j\nssh: {port: 0}\n" + good, "f:2: port 0 is out of range; give 1 to 65535"},
      {"job: j\nssh: {user: -oProxyCommand=x}\n" + good, "f:2: \"-oProxyCommand=x\" is no user"},
      {"job: j\nssh: {options: [-v]}\n" + good, "f:2: \"-v\" is no option; write NAME=VALUE"},
      {"job: j\nssh: {at_once: 0}\n" + good, "f:2: at_once is 0; give 1 to 256"},
      {"job: j\nssh: {connect_deadline: 1ms}\n" + good, "f:2: connect_deadline is below 1s"},
      {"job: j\nscheduler: {hosts: -oProxyCommand=x}\n", "f:2: \"-oProxyCommand=x\" is no host"},
      {"job: j\nscheduler: {hosts: me@a}\n",
       "f:2: \"me@a\" is no host; write letters, digits and "
       "._-:, the first no -, and a user of ssh as `user`"},
      {"job: j\nhosts: {b: }\n" + good, "f:3: host a is not in `hosts`; did you mean b?"},
      {"job: j\nhosts: {a: {address: b}}\n" + good, "f:2: \"b\" is no IP address"},
      {"job: j\nhosts: {a: {lables: b}}\n" + good, "did you mean \"labels\"?"},
      {"job: j\nservers: {hosts: a}\n", "f:1: there is no scheduler; add scheduler: {hosts: HOST}"},
      {"job: j\nscheduler: {hosts: a}\n", "f:1: there are no servers; add servers"},
      {"job: j\nscheduler: {}\n", "f:2: scheduler has no hosts; add hosts: [HOST]"},
      {"job: j\nscheduler: {hosts: [a, b]}\n", "f:2: several schedulers keep their log in etcd"},
      {"job: j\nscheduler: {hosts: a, port: 70707}\n", "f:2: port 70707 is out of range"},
      {"job: j\nscheduler: {hosts: a, flags: [--job=x]}\n",
       "f:2: --job follows from `job` of this file; leave it out"},
      {"job: j\nscheduler: {hosts: a, flags: [loops]}\n",
       "f:2: flag \"loops\" does not begin with"},
      {"job: j\nscheduler: {hosts: a, flags: [--help]}\n", "f:2: --help starts nothing"},
      {"job: j\nscheduler: {hosts: a}\nservers: {hosts: [a, a]}\n", "f:3: host a is named twice"},
      {"job: j\nscheduler: {hosts: a}\nservers: {hosts: a, count: 0}\n", "f:3: count 0 on 1 hosts"},
      {"job: j\nscheduler: {hosts: a}\nservers: {hosts: a, count: 4000000000}\n", "f:3: count "},
      {"job: j\n" + good + "workers: {hosts: a}\n", "f:4: \"\" is no program; give program: PATH"},
      {"job: j\n" + good + "workers: {hosts: a, program: -x}\n", "f:4: \"-x\" is no program"},
      {"job: j\n" + good + "workers: {hosts: a, program: x, environment: {A B: c}}\n",
       "f:4: \"A B\" is no name of a variable"},
      {"job: j\ngroups: 2\n" + good + "workers: {hosts: a, program: x}\n",
       "f:2: 1 workers cannot be divided into 2 groups"},
      {"job: j\nscheduler: {hosts: a, flags: [--groups=2]}\nservers: {hosts: a}\n"
       "workers: {hosts: a, program: x}\n",
       "f:2: --groups=2 follows from `groups` and `workers`"},
  };
  for (const auto& [text, error] : mistakes) {
    const auto file = ParseClusterFile(text, "f");
    ASSERT_FALSE(file.ok()) << text;
    EXPECT_THAT(std::string(file.status().message()), HasSubstr(error)) << text;
  }
}

// Such a file would take all memory, or all of the stack.
TEST(ClusterFileTest, AnAnchorMayNotStandForItself) {
  std::string doubled = "job: j\nx0: &x0 [a]\n";
  for (int i = 1; i < 64; ++i) {
    absl::StrAppend(&doubled, "x", i, ": &x", i, " [*x", i - 1, ", *x", i - 1, "]\n");
  }
  for (const std::string& text :
       {std::string("job: j\nhosts: &a [*a]\n"), std::string("&a {job: *a}\n"), doubled}) {
    const auto file = ParseClusterFile(text, "f");
    ASSERT_FALSE(file.ok());
    EXPECT_THAT(std::string(file.status().message()), HasSubstr("aliases stand for"));
  }
}

TEST(ClusterFileTest, HostsReachEachOther) {
  const std::string text = "job: j\nscheduler: {hosts: 127.0.0.1}\nservers: {hosts: 10.0.0.1}\n";
  EXPECT_THAT(std::string(CheckAddresses(Parse(text)).message()),
              HasSubstr("f:2: host 127.0.0.1 has the address 127.0.0.1, which other hosts do not "
                        "reach"));
  EXPECT_TRUE(
      CheckAddresses(Parse("job: j\nscheduler: {hosts: 127.0.0.1}\nservers: {hosts: 127.0.0.1}\n"))
          .ok());
}

TEST(SshCommandsTest, NeverAskAndTakeNoHostForAnOption) {
  const ClusterFile file = Parse(kFile);
  const SshCommands commands(file, "/run/s");
  EXPECT_THAT(commands.Run(1, "echo 'a'"),
              ElementsAre("ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=3", "-o",
                          "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "-o",
                          "ControlMaster=auto", "-o", "ControlPersist=30", "-o",
                          "ControlPath=/run/s/1", "-i", "key", "-o", "StrictHostKeyChecking=yes",
                          "-o", "User=you", "-o", "Port=2222", "--", "node-2",
                          absl::StrCat("exec /bin/sh -c ", ShellWord("echo 'a'"))));
  const auto copy = commands.Copy(0, {"x:y", "/z"}, "there/in");
  EXPECT_EQ(std::vector<std::string>(copy.end() - 4, copy.end()),
            (std::vector<std::string>{"--", "./x:y", "/z", "node-1:there/in/"}));
  EXPECT_THAT(SshCommands(file, std::string(100, 's')).Disconnect(0), IsEmpty())
      << "no room for the name of a socket";
  EXPECT_THAT(DryRunText(file), HasSubstr("# worker-1 on node-2: env 'COVEY_DATA_HOST=10.0.0.2'"));
}

TEST(HostScriptTest, ReadsReportsAndSkipsTheRest) {
  const HostReport report = ReadHostReport(
      "Welcome!\ncovey a running 17\ncovey b ended\ncovey b log covey c running 1\ncovey d none\n"
      "covey e strange\ncovey\n");
  EXPECT_EQ(report.processes.at("a").process_id, 17);
  EXPECT_TRUE(report.processes.at("a").IsAlive());
  EXPECT_FALSE(report.processes.at("b").IsAlive());
  EXPECT_THAT(report.processes.at("b").last_lines, ElementsAre("covey c running 1"));
  EXPECT_FALSE(report.processes.contains("c"));
  EXPECT_FALSE(report.processes.at("e").IsAlive());
  EXPECT_EQ(ReadHostReport("covey - refused it is busy").refusal, "it is busy");
}

TEST(LogLinesTest, EachLineHasTheNameOfItsProcess) {
  LogLines lines({"a-0", "b-0"});
  const auto take = [&lines](absl::string_view line) { return lines.Take(line); };
  EXPECT_THAT(take("noise"), IsEmpty());
  EXPECT_THAT(take("==> log/a-0.log <=="), IsEmpty());
  EXPECT_THAT(take("one"), ElementsAre(Pair("a-0", "one")));
  EXPECT_THAT(take("==> log/other.log <=="), ElementsAre(Pair("a-0", "==> log/other.log <==")));
  EXPECT_THAT(take(""), IsEmpty());
  EXPECT_THAT(take("two"), ElementsAre(Pair("a-0", ""), Pair("a-0", "two")));
  EXPECT_THAT(take(""), IsEmpty());
  EXPECT_THAT(take("==> log/b-0.log <=="), IsEmpty()) << "the empty line was tail's";
  EXPECT_THAT(take("three"), ElementsAre(Pair("b-0", "three")));
}

TEST(CommandBatchTest, ReturnsOutcomesInOrderAndKillsWhatIsLate) {
  const auto command = [](const std::string& line, absl::Duration deadline) {
    return BatchCommand{
        .program = {.name = "sh", .arguments = {"sh", "-c", line}, .environment = {}},
        .deadline = deadline};
  };
  const auto outcomes =
      RunBatch({command("echo one; exit 3", absl::Seconds(60)),
                command("sleep 600", absl::Milliseconds(100)),
                command("echo three >&2", absl::Seconds(60)),
                {.program = {.name = "x", .arguments = {"no-such-program"}, .environment = {}},
                 .deadline = absl::Seconds(60)}},
               2);
  ASSERT_TRUE(outcomes.ok());
  EXPECT_EQ((*outcomes)[0].output, "one\n");
  EXPECT_EQ((*outcomes)[0].exit.code, 3);
  EXPECT_TRUE(absl::IsDeadlineExceeded((*outcomes)[1].status));
  EXPECT_EQ((*outcomes)[2].error, "three\n");
  EXPECT_TRUE((*outcomes)[2].ok());
  EXPECT_TRUE(absl::IsNotFound((*outcomes)[3].status));
}

TEST(RemoteHostsTest, FailuresAreOne) {
  RemoteHosts::Answers answers(20);
  EXPECT_TRUE(FailureOf(answers).ok());
  answers[3].status = absl::UnavailableError("f:1: three");
  answers[4].status = absl::FailedPreconditionError("f:2: four");
  EXPECT_EQ(FailureOf(answers), absl::UnavailableError("f:1: three\nf:2: four"));
  for (auto& answer : answers) answer.status = absl::UnavailableError("x");
  EXPECT_THAT(std::string(FailureOf(answers).message()), HasSubstr("\nand 10 hosts more"));
}

proto::StatusReply StatusOf(std::vector<std::pair<std::string, proto::Node::State>> nodes) {
  proto::StatusReply status;
  for (const auto& [name, state] : nodes) {
    proto::Node& node = *status.mutable_view()->add_nodes();
    node.set_name(name);
    node.set_state(state);
    if (state == proto::Node::DEAD) node.set_departure("silent for 2.6 s");
  }
  return status;
}

TEST(HostsViewTest, ShowsWhatHostAndSchedulerSee) {
  const ClusterFile file = Parse(kFile);
  RemoteHosts::Answers answers = {{.host = 0}, {.host = 1}};
  answers[0].report = ReadHostReport("covey scheduler-0 running 5\ncovey server-0 running 6\n");
  answers[1].report = ReadHostReport(
      "covey server-1 running 7\ncovey worker-0 ended\ncovey worker-0 log bad\n"
      "covey worker-1 ended\ncovey worker-1 log done\n");
  const auto rows = RowsOf(file, PlanProcesses(file), answers,
                           StatusOf({{"server-0", proto::Node::ALIVE},
                                     {"server-1", proto::Node::DEAD},
                                     {"worker-0", proto::Node::DEAD},
                                     {"worker-1", proto::Node::LEFT}}));
  EXPECT_EQ(HostsText(rows),
            "HOST    PROCESS      PID  STATE     IN JOB  NOTE\n"
            "node-1  scheduler-0    5  running   alive\n"
            "node-1  server-0       6  running   alive\n"
            "node-2  server-1       7  running   dead    silent for 2.6 s\n"
            "node-2  worker-0       -  ended     dead    bad\n"
            "node-2  worker-1       -  finished  left\n");
  std::vector<bool> well;
  const auto json = nlohmann::json::parse(HostsJson(rows));
  for (const auto& row : json["processes"]) {
    well.push_back(row["is_well"]);
  }
  EXPECT_THAT(well, ElementsAre(true, true, false, false, true));
  answers[1].status = absl::UnavailableError("f:7: host node-2 is not reached");
  const auto unreached = RowsOf(file, PlanProcesses(file), answers, absl::UnavailableError("no"));
  EXPECT_EQ(unreached[0].note, "no");
  EXPECT_EQ(unreached[4].state, "unreachable");
}

TEST(StartWatchTest, CountsWhatIsRegistered) {
  const auto processes = PlanProcesses(Parse(kFile));
  EXPECT_EQ(ProgressLine(StatusOf({{"server-0", proto::Node::ALIVE},
                                   {"server-1", proto::Node::DEAD},
                                   {"worker-0", proto::Node::LEFT}})
                             .view(),
                         processes),
            "1 of 2 servers and 1 of 2 workers are registered");
}

}  // namespace
}  // namespace covey::cli
