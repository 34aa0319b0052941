// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/peers/collective_load.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/bench/measure/statistics.h"
#include "client/cli/bench/peers/peer_programs.h"
#include "client/cli/bench/peers/program_output.h"
#include "client/cli/bench/peers/seconds_each.h"
#include "client/cli/process/child_process.h"
#include "client/cli/run/plan/binaries.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

// A turn that takes longer has hung.
constexpr char kTurnSecondsMax[] = "300s";
// Bytes that a turn sums in all, within the bounds of repetitions.
constexpr uint64_t kTurnBytes = 256 << 20;

uint64_t RepetitionsFor(uint64_t bytes) { return std::clamp<uint64_t>(kTurnBytes / bytes, 3, 200); }

using Arguments = std::vector<std::string>;

absl::StatusOr<Sample> RunProgram(const Arguments& arguments, uint64_t bytes,
                                  uint64_t repetitions) {
  COVEY_ASSIGN_OR_RETURN(const std::string output, OutputOf(arguments));
  COVEY_ASSIGN_OR_RETURN(const std::vector<double> microseconds, MicrosecondsIn(output));
  return Sample{.values = {Quantile(microseconds, 0.5)},
                .operations = repetitions,
                .bytes = repetitions * bytes};
}

Contender MakeContender(const CollectiveCase& collective, std::string what,
                        std::vector<std::string> limits, Arguments arguments) {
  return {.rows = {Figure{.what = std::move(what),
                          .transport = collective.transport,
                          .bytes = collective.bytes,
                          .unit = "us",
                          .repetitions = {},
                          .limits = std::move(limits)}},
          .measure = [arguments = std::move(arguments), bytes = collective.bytes] {
            return RunProgram(arguments, bytes, RepetitionsFor(bytes));
          }};
}

}  // namespace

CollectivePrograms::CollectivePrograms() {
  auto folder = TemporaryFolder::Make();
  if (!folder.ok()) {
    left_out_.push_back(absl::StrCat("all-reduce: ", folder.status().message()));
    return;
  }
  folder_ = *std::move(folder);
  FindOurs();
  FindOpenMpi();
  FindGloo();
}

void CollectivePrograms::FindOurs() {
  const std::string own = OwnPath();
  const std::string folder = own.substr(0, own.rfind('/'));
  for (const char* place : {"/all_reduce", "/../../worker/examples/all_reduce/all_reduce"}) {
    if (FindProgram(folder + place).ok()) ours_ = folder + place;
  }
  if (ours_.empty()) {
    left_out_.push_back(absl::StrCat("all-reduce: no all_reduce beside ", own,
                                     "; build //worker/examples/all_reduce"));
  }
}

void CollectivePrograms::FindOpenMpi() {
  const std::string source = folder_->path() + "/open_mpi.c",
                    program = folder_->path() + "/open_mpi";
  if (!FindProgram("mpirun").ok() || !FindProgram("mpicc").ok()) {
    left_out_.push_back("open mpi: not installed: apt-get install openmpi-bin libopenmpi-dev");
    return;
  }
  absl::Status status = WriteTextFile(source, kOpenMpiProgram);
  if (status.ok()) status = OutputOf({"mpicc", "-O2", "-o", program, source}).status();
  if (status.ok()) {
    open_mpi_ = program;
  } else {
    left_out_.push_back(absl::StrCat("open mpi: ", status.message()));
  }
}

void CollectivePrograms::FindGloo() {
  const std::string script = folder_->path() + "/gloo.py";
  if (!OutputOf({"python3", "-c", "import torch.distributed"}).ok()) {
    left_out_.push_back("gloo: not installed: apt-get install python3-torch");
  } else if (const absl::Status status = WriteTextFile(script, kGlooProgram); status.ok()) {
    gloo_script_ = script;
  } else {
    left_out_.push_back(absl::StrCat("gloo: ", status.message()));
  }
}

std::vector<Contender> CollectivePrograms::MakeContenders(
    const CollectiveCase& collective, const std::vector<std::string>& algorithms) const {
  std::vector<Contender> contenders;
  if (ours_.empty()) return contenders;
  const std::string members = absl::StrCat(collective.members);
  const std::string bytes = absl::StrCat(collective.bytes);
  const std::string repetitions = absl::StrCat(RepetitionsFor(collective.bytes));
  const std::string suffix = absl::StrCat(" all-reduce x", members);
  for (const std::string& algorithm : algorithms) {
    contenders.push_back(
        MakeContender(collective, absl::StrCat("covey all-reduce ", algorithm, " x", members),
                      {"open mpi" + suffix, "gloo" + suffix},
                      {OwnPath(), "run", "--timeout", kTurnSecondsMax, "--workers", members,
                       "--transport", collective.transport, "--", ours_, "--bytes", bytes,
                       "--repetitions", repetitions, "--collective", algorithm}));
  }
  if (!open_mpi_.empty()) {
    const char* const btl = collective.transport == "tcp" ? "tcp,self" : "vader,self";
    Arguments arguments = {"timeout", kTurnSecondsMax, "mpirun", "--oversubscribe", "-n", members,
                           "--mca",   "btl",           btl};
    // mpirun refuses the superuser otherwise.
    if (geteuid() == 0) arguments.push_back("--allow-run-as-root");
    arguments.insert(arguments.end(), {open_mpi_, bytes, repetitions});
    contenders.push_back(MakeContender(collective, "open mpi" + suffix, {}, std::move(arguments)));
  }
  if (!gloo_script_.empty()) {
    contenders.push_back(MakeContender(collective, "gloo" + suffix, {},
                                       {"timeout", kTurnSecondsMax, "python3", gloo_script_, bytes,
                                        repetitions, members, folder_->path() + "/meeting"}));
  }
  return contenders;
}

}  // namespace covey::cli
