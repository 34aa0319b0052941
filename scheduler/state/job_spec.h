// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "common/cluster/job_durability.h"

namespace covey::scheduler {

// The job as its operator declared it: its name, the nodes that it is expected to have, and what it
// may lose. A value.
struct JobSpec {
  std::string name = "default";
  uint32_t servers = 1;
  uint32_t groups = 1;
  uint32_t workers_per_group = 1;
  // The scheduler chooses the number of groups and their members, and chooses again while the job
  // runs. Then `groups` is 1, and `workers_per_group` are all workers.
  bool plans_groups = false;
  // Servers and workers beyond the expected ones are accepted, and workers that register after the
  // groups have formed are placed. Otherwise such nodes are refused.
  bool elastic = true;
  // Of a new job: ClusterView.feedback_flush_steps.
  uint64_t feedback_flush_steps = 0;
  // Of a new job: ClusterView.run.
  uint64_t run = 0;
  JobDurability durability = {};

  uint32_t workers() const { return groups * workers_per_group; }
};

}  // namespace covey::scheduler
