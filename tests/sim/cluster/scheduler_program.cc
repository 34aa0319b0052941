// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/cluster/scheduler_program.h"

#include <cstdint>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "scheduler/log/scheduler_log.h"

namespace covey::sim {

SchedulerProgram::SchedulerProgram(Simulator& simulator, const scheduler::Config& config,
                                   SimDisk& disk) {
  const std::string& log = disk.content();
  auto recovered =
      scheduler::RecoverLog({reinterpret_cast<const uint8_t*>(log.data()), log.size()});
  COVEY_CHECK(recovered.ok());
  disk.Truncate(recovered->intact_bytes);
  if (recovered->newest) simulator.Count("scheduler_recovered");
  actor_ = std::make_unique<scheduler::SchedulerActor>(config, std::move(recovered->newest));
}

}  // namespace covey::sim
