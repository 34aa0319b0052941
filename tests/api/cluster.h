// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace covey {

// A scheduler and one server of the job "default", inside this process but behind real sockets on
// free loopback ports, for tests of the public interfaces: requests to the scheduler go through
// GrpcChannel and GrpcService, pushes and pulls through ZeroMQ.
//
// Thread-safety: immutable after construction. Programs that use it end before its destruction.
class Cluster {
 public:
  struct Options {
    // Groups of workers; 0 = none are expected.
    uint32_t groups = 0;
    uint32_t workers_per_group = 1;
  };

  explicit Cluster(const Options& options);
  ~Cluster();

  // "127.0.0.1:41234".
  std::string scheduler() const;

 private:
  class Scheduler;
  class Server;

  const std::unique_ptr<Scheduler> scheduler_;
  const std::unique_ptr<Server> server_;
};

}  // namespace covey
