// SPDX-License-Identifier: Apache-2.0

// Learns WordNet's knowledge graph as one worker of a cluster, in rows of sparse tables; `covey
// run` starts any number of workers:
//   covey run --servers 2 --groups 4 -- wordnet

#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/process_main.h"
#include "worker/examples/wordnet/options.h"
#include "worker/examples/wordnet/train.h"
#include "worker/examples/worker_program.h"

namespace covey::wordnet {
namespace {

void Print(absl::string_view line) { std::cout << line << std::endl; }

void PrintRow(absl::string_view name, const RankSums& sums) {
  Print(absl::StrFormat("%-18s %9.0f %7.3f %7.3f %7.3f", name, sums.questions, sums.mrr(),
                        sums.hits_1(), sums.hits_10()));
}

RankSums SumOf(const Ranking& ranking) {
  RankSums all;
  for (const RankSums& sums : ranking) all.Add(sums);
  return all;
}

void PrintTable(const Ranking& ranking) {
  Print(absl::StrFormat("%-18s %9s %7s %7s %7s", "relation", "questions", "MRR", "Hits@1",
                        "Hits@10"));
  for (size_t i = 0; i < ranking.size(); ++i) {
    if (ranking[i].questions > 0) PrintRow(kRelations[i].name, ranking[i]);
  }
  PrintRow("all", SumOf(ranking));
}

void PrintResult(const worker::Worker& worker, const Options& options, const Outcome& outcome) {
  nlohmann::ordered_json relations = nlohmann::ordered_json::object();
  for (size_t i = 0; i < outcome.ranking.size(); ++i) {
    const RankSums& sums = outcome.ranking[i];
    if (sums.questions == 0) continue;
    relations[std::string(kRelations[i].name)] = {
        {"questions", static_cast<uint64_t>(sums.questions)},
        {"mrr", sums.mrr()},
        {"hits_1", sums.hits_1()},
        {"hits_10", sums.hits_10()}};
  }
  const RankSums all = SumOf(outcome.ranking);
  const double seconds = absl::ToDoubleSeconds(outcome.duration);
  const nlohmann::ordered_json json = {
      {"mrr", all.mrr()},
      {"hits_1", all.hits_1()},
      {"hits_10", all.hits_10()},
      {"questions", static_cast<uint64_t>(all.questions)},
      {"split", std::string(SplitName(options.split))},
      {"entities", outcome.entities},
      {"training_facts", outcome.training_facts},
      {"loss", outcome.loss},
      {"train_seconds", seconds},
      {"samples", outcome.trained},
      {"samples_per_second", seconds > 0 ? static_cast<double>(outcome.trained) / seconds : 0},
      {"groups", worker.groups()},
      {"workers", worker.size()},
      {"by_relation", std::move(relations)}};
  Print(absl::StrCat("result ", json.dump()));
}

absl::Status Run(const worker::WorkerConfig& config, const Options& options,
                 worker::Worker& worker) {
  DrainOnSignal drain(worker);
  COVEY_ASSIGN_OR_RETURN(
      const Outcome outcome,
      Train(worker, config, options,
            {.now = MonotonicNow,
             .may_go_on = [&drain] { return drain.Pause(absl::ZeroDuration()); }},
            [&worker](absl::string_view line) {
              if (worker.rank() == 0) Print(line);
            }));
  if (worker.rank() == 0) PrintTable(outcome.ranking);
  // One worker of each group, because the others may be lost.
  if (worker.group().rank() == 0) PrintResult(worker, options, outcome);
  return absl::OkStatus();
}

int Main(int argc, const char* const* argv) {
  Options options;
  return RunWorkerProgram(
      {.name = "wordnet",
       .description = "Learns WordNet's knowledge graph as one worker of a cluster: rows of "
                      "synsets and relations in sparse tables (ComplEx), ranked at the end by "
                      "questions that were held out. Needs Debian's package wordnet-base.",
       .add_options = [&options](ConfigFile& file) { options.AddTo(file); },
       .validate = [&options] { return options.Validate(); },
       .run = [&options](const worker::WorkerConfig& config,
                         worker::Worker& worker) { return Run(config, options, worker); }},
      argc, argv, std::cerr);
}

}  // namespace
}  // namespace covey::wordnet

int main(int argc, char** argv) {
  covey::InitProcess("");
  return covey::wordnet::Main(argc, argv);
}
