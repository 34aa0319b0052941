// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/measure/turns.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

// The resources that a contender has used in all repetitions that count.
struct Spent {
  Usage usage;
  uint64_t operations = 0;
  uint64_t bytes = 0;
};

struct Turn {
  Sample sample;
  Usage usage;
};

Usage Minus(const Usage& after, const Usage& before) {
  return {.user_seconds = after.user_seconds - before.user_seconds,
          .system_seconds = after.system_seconds - before.system_seconds,
          .context_switches = after.context_switches - before.context_switches,
          .page_faults = after.page_faults - before.page_faults};
}

void AddTo(Spent& spent, const Turn& turn) {
  spent.usage.user_seconds += turn.usage.user_seconds;
  spent.usage.system_seconds += turn.usage.system_seconds;
  spent.usage.context_switches += turn.usage.context_switches;
  spent.usage.page_faults += turn.usage.page_faults;
  spent.operations += turn.sample.operations;
  spent.bytes += turn.sample.bytes;
}

Cost CostOf(const Spent& spent, const CostMeter& meter) {
  const double gigabytes = static_cast<double>(spent.bytes) / 1e9;
  const auto operations = static_cast<double>(spent.operations);
  Cost cost = {
      .user_core_seconds_per_gb = spent.usage.user_seconds / gigabytes,
      .system_core_seconds_per_gb = spent.usage.system_seconds / gigabytes,
      .context_switches_per_operation =
          static_cast<double>(spent.usage.context_switches) / operations,
      .page_faults_per_operation = static_cast<double>(spent.usage.page_faults) / operations};
  meter.memory(cost);
  return cost;
}

// One round over all contenders, beginning with number `first`.
absl::StatusOr<std::vector<Turn>> Round(const std::vector<Contender>& contenders, size_t first,
                                        const CostMeter& meter) {
  std::vector<Turn> turns(contenders.size());
  for (size_t i = 0; i < contenders.size(); ++i) {
    const size_t number = (first + i) % contenders.size();
    const Contender& contender = contenders[number];
    const Usage before = contender.has_cost ? meter.usage() : Usage();
    COVEY_ASSIGN_OR_RETURN(turns[number].sample, contender.measure());
    if (contender.has_cost) turns[number].usage = Minus(meter.usage(), before);
    COVEY_CHECK(turns[number].sample.values.size() == contender.rows.size());
  }
  return turns;
}

}  // namespace

absl::StatusOr<std::vector<Figure>> MeasureInTurns(std::vector<Contender> contenders,
                                                   const TurnOptions& options, QuietGate& gate,
                                                   const CostMeter& meter) {
  COVEY_RETURN_IF_ERROR(Round(contenders, 0, meter).status());
  std::vector<Spent> spent(contenders.size());
  for (int repetition = 0; repetition < options.repetitions;) {
    gate.AwaitQuiet();
    COVEY_ASSIGN_OR_RETURN(const std::vector<Turn> turns,
                           Round(contenders, static_cast<size_t>(repetition), meter));
    if (gate.Judge() == QuietGate::Verdict::kRepeat) continue;
    for (size_t i = 0; i < contenders.size(); ++i) {
      for (size_t row = 0; row < contenders[i].rows.size(); ++row) {
        Figure& figure = contenders[i].rows[row];
        figure.repetitions.push_back(turns[i].sample.values[row]);
        figure.foreign_shares.push_back(gate.judged().foreign);
        figure.steal_shares.push_back(gate.judged().steal);
      }
      AddTo(spent[i], turns[i]);
    }
    ++repetition;
  }
  std::vector<Figure> figures;
  for (size_t i = 0; i < contenders.size(); ++i) {
    for (Figure& row : contenders[i].rows) {
      if (contenders[i].has_cost && spent[i].bytes > 0) row.cost = CostOf(spent[i], meter);
      figures.push_back(std::move(row));
    }
  }
  return figures;
}

}  // namespace covey::cli
