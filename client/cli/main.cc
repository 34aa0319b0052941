// SPDX-License-Identifier: Apache-2.0

// The `covey` command.

#include "client/cli/bench/bench_command.h"
#include "client/cli/certificates/certificates_command.h"
#include "client/cli/chaos/chaos_command.h"
#include "client/cli/cluster/cluster_command.h"
#include "client/cli/command_line.h"
#include "client/cli/dashboard/dashboard_command.h"
#include "client/cli/doctor/doctor_command.h"
#include "client/cli/events/events_command.h"
#include "client/cli/lookup/lookup_command.h"
#include "client/cli/model/export_command.h"
#include "client/cli/plan/plan_command.h"
#include "client/cli/replay/replay_command.h"
#include "client/cli/rows/export_rows_command.h"
#include "client/cli/run/run_command.h"
#include "client/cli/scale/drain_command.h"
#include "client/cli/scale/quarantine_command.h"
#include "client/cli/scale/scale_command.h"
#include "client/cli/simulate/simulate_command.h"
#include "client/cli/snapshot/snapshot_command.h"
#include "client/cli/status/status_command.h"
#include "client/cli/status/tables_command.h"
#include "client/cli/top/top_command.h"
#include "client/cli/trace/trace_command.h"

namespace covey::cli {
namespace {

constexpr Command kCommands[] = {
    {"bench", "measures push, pull and round trip on this machine", BenchCommand},
    {"certificates", "makes, renews and checks the certificates of a job", CertificatesCommand},
    {"chaos", "injects faults into a small cluster of its own and checks the promises",
     ChaosCommand},
    {"cluster", "starts, shows and ends a cluster on plain hosts, over ssh", ClusterCommand},
    {"dashboard", "shows a running cluster in a browser on this machine", DashboardCommand},
    {"doctor", "finds what is wrong with this machine and with a cluster", DoctorCommand},
    {"drain", "drains a server or worker: it leaves without losing anything", DrainCommand},
    {"events", "shows the decisions of the scheduler with their evidence", EventsCommand},
    {"export", "writes the model of a running cluster to a safetensors file", ExportCommand},
    {"export-rows", "writes the rows of a sparse table to files for NumPy", ExportRowsCommand},
    {"lookup", "shows rows of a sparse table", LookupCommand},
    {"plan", "shows by what groups are planned, and what others would bring", PlanCommand},
    {"quarantine", "keeps what a producer pushes out of tables with a gate, or releases it",
     QuarantineCommand},
    {"replay", "applies a recording again, and says whether it is equal, bit for bit",
     ReplayCommand},
    {"run", "runs a program on a whole cluster on this machine", RunCommand},
    {"scale", "changes the numbers of servers and workers", ScaleCommand},
    {"simulate", "predicts a training run on a cluster that need not exist", SimulateCommand},
    {"snapshot", "lists, shows, verifies, exports and deletes the snapshots in a folder",
     SnapshotCommand},
    {"status", "shows nodes, groups and tables of a cluster, and its health", StatusCommand},
    {"tables", "shows the tables of a cluster, and changes their contracts", TablesCommand},
    {"top", "shows a cluster on a terminal, as it is now", TopCommand},
    {"trace", "records what all nodes do, on one time line for ui.perfetto.dev", TraceCommand},
};

}  // namespace
}  // namespace covey::cli

int main(int argc, char** argv) {
  return covey::cli::RunCommandLine(covey::cli::kCommands, argc, argv);
}
