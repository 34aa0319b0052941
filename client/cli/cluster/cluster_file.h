// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace covey::cli {

// A cluster on plain hosts, as the user's file HOSTS.yaml describes it. A value. `at` is where in
// the file something stands, for errors: "hosts.yaml:7".
//
//   job: mnist
//   folder: covey-mnist              # on each host; relative = below the home of the user of ssh
//   scheduler: {hosts: node-1, port: 7070}
//   servers: {hosts: [node-1, node-2], count: 1, flags: [--loops=2]}
//   workers: {hosts: [node-2, node-3], program: ./train, arguments: [--epochs, 5]}
struct ClusterFile {
  struct Host {
    std::string at;
    // By which ssh finds it.
    std::string name;
    // At which the other hosts of the cluster reach it: an IP address. Empty = to be looked up.
    std::string address;
    // "zone/rack"; empty = none.
    std::string labels;
    std::string folder;
    // Of ssh; empty and 0 = as ssh itself finds out.
    std::string user;
    uint32_t port = 0;
  };
  // Processes of one kind on some hosts, by their indices in `hosts`.
  struct Processes {
    std::string at;
    std::vector<size_t> hosts;
    // On each host.
    uint32_t count = 1;
    // Of schedulers and servers flags, of workers any arguments.
    std::vector<std::string> arguments;
    // Of workers.
    std::string program;
    std::map<std::string, std::string> environment;
  };
  struct Ssh {
    std::string identity;
    // Each "NAME=VALUE", as ssh_config(5) has them.
    std::vector<std::string> options;
    absl::Duration connect_deadline = absl::Seconds(10);
    // Of ssh and scp, as many run at a time at most.
    uint32_t at_once = 16;
  };

  // For errors, and the folder to which relative paths of this machine refer.
  std::string path;
  std::string job;
  // Of the processes covey_scheduler and covey_server on the hosts; empty = they are on the PATH.
  std::string programs;
  // Files of this machine that are copied into the folder `bin` of each host.
  std::vector<std::string> copy;
  // The folder of this machine with the authority and certificates of the job.
  std::string tls;
  bool insecure = false;
  // `groups: auto`: the scheduler plans them, and `groups` is 1.
  uint32_t groups = 1;
  bool plans_groups = false;
  // Until all processes are registered.
  absl::Duration start_deadline = absl::Minutes(1);
  Ssh ssh;
  std::vector<Host> hosts;
  uint32_t scheduler_port = 7070;
  Processes scheduler;
  std::vector<Processes> servers;
  std::vector<Processes> workers;

  uint32_t servers_count() const { return CountOf(servers); }
  uint32_t workers_count() const { return CountOf(workers); }

 private:
  static uint32_t CountOf(const std::vector<Processes>& all);
};

// The most processes of one file: a mistyped count is an error and not a flood.
inline constexpr uint32_t kClusterProcessesMax = 4096;

// `text` is the content of the file `path`. Pure. INVALID_ARGUMENT: where, what is wrong, and what
// to write.
absl::StatusOr<ClusterFile> ParseClusterFile(absl::string_view text, const std::string& path);

}  // namespace covey::cli
