// SPDX-License-Identifier: Apache-2.0
// Files of `covey cluster`, up to the command lines that are made of them.
#include "client/cli/cluster/cluster_file.h"

#include <string>

#include "client/cli/cluster/cluster_plan.h"
#include "common/base/check.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {

std::vector<std::string> FuzzSeeds() {
  return {
      "job: mnist\nscheduler: {hosts: node-1, port: 7070}\ninsecure: true\n"
      "servers: {hosts: [node-1, node-2], count: 1, flags: [--data-loops=2]}\n"
      "workers: {hosts: [node-2, node-3], program: ./train, arguments: [--epochs, 5]}\n",
      "job: a\nfolder: /srv/a\ntls: tls\ngroups: 2\nstart_deadline: 2m\n"
      "ssh: {user: covey, port: 22, identity: key, options: [A=b], at_once: 4}\n"
      "hosts: {a: {address: 10.0.0.1, labels: z/r, folder: f}, b: {address: 10.0.0.2}}\n"
      "scheduler: {hosts: a}\nservers:\n- {hosts: a}\n- {hosts: [b], count: 3}\n"
      "workers:\n- {hosts: [a, b], program: p, environment: {A: b}}\n",
  };
}

bool FuzzOne(std::span<const uint8_t> input) {
  auto file = cli::ParseClusterFile(FuzzText(input), "FILE");
  if (!file.ok()) {
    COVEY_CHECK(file.status().code() == absl::StatusCode::kInvalidArgument);
    COVEY_CHECK(!file.status().message().empty());
    return false;
  }
  for (cli::ClusterFile::Host& host : file->hosts) {
    if (host.address.empty()) host.address = "10.0.0.9";
  }
  const auto processes = cli::PlanProcesses(*file);
  COVEY_CHECK(processes.size() ==
              file->scheduler.hosts.size() + file->servers_count() + file->workers_count());
  COVEY_CHECK(processes.size() <= cli::kClusterProcessesMax);
  for (const cli::PlannedProcess& process : processes) {
    COVEY_CHECK(process.host < file->hosts.size());
    for (const std::string& word : process.command) {
      COVEY_CHECK(word.find('\0') == std::string::npos);
    }
  }
  return true;
}

}  // namespace covey
