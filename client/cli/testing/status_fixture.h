// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/text_format.h>

#include <string>

#include "common/base/check.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// A status with two groups: group 0 runs, one member of group 1 is dead.
inline proto::StatusReply StatusForTests() {
  proto::StatusReply status;
  COVEY_CHECK(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        view {
          job_name: "mnist"
          epoch: 5
          nodes {
            id: 2
            role: SERVER
            state: ALIVE
            name: "server-0"
            endpoints: ""
            endpoints: "tcp://127.0.0.1:1"
          }
          nodes {
            id: 3
            role: WORKER
            state: ALIVE
            name: "worker-0"
            labels: "z/r"
            process_id: 77
            host: "h"
          }
          nodes { id: 4 role: WORKER state: ALIVE name: "worker-1" rank: 1 }
          nodes {
            id: 5
            role: WORKER
            state: DEAD
            name: "worker-2"
            rank: 2
            departure: "silent for 2.6 s"
          }
          nodes { id: 6 role: WORKER state: LEFT name: "worker-3" rank: 3 departure: "done" }
          nodes {
            id: 7
            role: WORKER
            state: ALIVE
            name: "worker-4"
            rank: 4
            standby: "evicted from group 0: too slow"
          }
          groups {
            id: 0
            generation: 1
            members: 3
            members: 4
            state: ACTIVE
            shares: 500
            shares: 1500
            minimum_members: 1
            grace_ms: 20
          }
          groups {
            id: 1
            generation: 1
            members: 5
            members: 6
            state: BROKEN
            reason: "worker-2 dead: silent for 2.6 s"
          }
          tables {
            id: 1
            spec {
              name: "hidden/weight"
              data_type: FLOAT32
              shape: 784
              shape: 128
              optimizer { kind: NESTEROV }
              contract { kind: BUFFERED buffer: 2 }
            }
            shards {
              index: 0
              element_count: 50176
              chain { node: 2 loop: 1 }
            }
            shards {
              index: 1
              first_element: 50176
              element_count: 50176
              chain { node: 2 loop: 1 }
            }
            contract { kind: SSP staleness: 3 }
            contract_epoch: 4
          }
        }
        nodes {
          node: 2
          silent_ms: 40
          load {
            table_bytes: 401408
            pushes: 10
            pulls: 12
            tables {
              table: 1
              updates: 10
              staleness: 1
              implicit_momentum: 0.5
              explicit_momentum: 0.4
              target_momentum: 0.9
            }
          }
        }
        nodes {
          node: 3
          silent_ms: 120
          progress {
            step: 30
            samples: 1920
            loss: 0.5
            staleness: 1
            samples_per_second: 1000
            compute_seconds: 0.06
            wait_seconds: 0.01
            input_seconds: 0.02
            group_seconds: 0.01
            samples_per_step: 60
            steps_aside: 4
          }
          pace { seconds_per_sample: 0.001 slowness: 2.5 state: STRAGGLER }
        }
        nodes {
          node: 4
          silent_ms: 80
          progress {
            step: 31
            samples: 1984
            loss: 0.3
            staleness: 2
            samples_per_second: 1500
            compute_seconds: 0.04
            wait_seconds: 0.03
            group_seconds: 0.01
            servers_seconds: 0.02
            samples_per_step: 100
          }
          pace { seconds_per_sample: 0.0004 slowness: 1 state: STEADY }
        }
        nodes { node: 5 silent_ms: 9000 }
        nodes { node: 6 silent_ms: 8000 }
        events { sequence: 1 at_ms: 100 kinds: "group" text: "groups formed" }
        events { sequence: 2 at_ms: 4200 kinds: "node" text: "worker-2 dead: silent for 2.6 s" }
        uptime_ms: 12300
      )pb",
      &status));
  return status;
}

}  // namespace covey::cli
