// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/machine/proc_text.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace covey::cli {
namespace {

// The text behind "name:" in the first line that begins with it.
std::optional<absl::string_view> Field(absl::string_view text, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, name)) continue;
    line = absl::StripLeadingAsciiWhitespace(line);
    if (absl::ConsumePrefix(&line, ":")) return absl::StripAsciiWhitespace(line);
  }
  return std::nullopt;
}

std::optional<uint64_t> NumberField(absl::string_view text, absl::string_view name) {
  const std::optional<absl::string_view> field = Field(text, name);
  uint64_t number = 0;
  if (!field.has_value()) return std::nullopt;
  const absl::string_view digits = field->substr(0, field->find(' '));
  return absl::SimpleAtoi(digits, &number) ? std::optional(number) : std::nullopt;
}

// The numbers from field `first` on; nothing when there are fewer than `count` or one is none.
std::optional<std::vector<uint64_t>> Numbers(absl::string_view text, size_t first, size_t count) {
  const std::vector<absl::string_view> fields =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  if (fields.size() < first + count) return std::nullopt;
  std::vector<uint64_t> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    if (!absl::SimpleAtoi(fields[first + i], &numbers[i])) return std::nullopt;
  }
  return numbers;
}

}  // namespace

std::optional<CpuLine> ReadCpuLine(absl::string_view stat) {
  if (!absl::ConsumePrefix(&stat, "cpu ")) return std::nullopt;
  // user nice system idle iowait irq softirq steal
  const auto ticks = Numbers(stat.substr(0, stat.find('\n')), 0, 8);
  if (!ticks.has_value()) return std::nullopt;
  CpuLine line = {.busy = (*ticks)[0] + (*ticks)[1] + (*ticks)[2], .steal = (*ticks)[7]};
  for (const uint64_t part : *ticks) line.total += part;
  return line;
}

std::optional<ProcessLine> ReadProcessLine(absl::string_view stat) {
  // The name in parentheses may hold spaces and parentheses.
  const size_t name_end = stat.rfind(')');
  if (name_end == absl::string_view::npos) return std::nullopt;
  const absl::string_view rest = stat.substr(name_end + 1);
  // Field 4 of proc(5) is the parent, 10 to 17 are minflt … cstime; the state is field 0 here.
  const auto parent = Numbers(rest, 1, 1);
  const auto numbers = Numbers(rest, 7, 6);
  const auto ended = Numbers(rest, 13, 2);
  if (!parent.has_value() || !numbers.has_value() || !ended.has_value()) return std::nullopt;
  return ProcessLine{.parent = static_cast<int>((*parent)[0]),
                     .user = (*numbers)[4],
                     .system = (*numbers)[5],
                     .children = (*ended)[0] + (*ended)[1],
                     .page_faults = (*numbers)[0] + (*numbers)[2]};
}

std::optional<uint64_t> ReadContextSwitches(absl::string_view status) {
  const auto voluntary = NumberField(status, "voluntary_ctxt_switches");
  const auto others = NumberField(status, "nonvoluntary_ctxt_switches");
  if (!voluntary.has_value() || !others.has_value()) return std::nullopt;
  return *voluntary + *others;
}

std::optional<uint64_t> ReadPss(absl::string_view smaps_rollup) {
  const auto kibibytes = NumberField(smaps_rollup, "Pss");
  if (!kibibytes.has_value()) return std::nullopt;
  return *kibibytes << 10;
}

std::string ReadChoice(absl::string_view text) {
  const size_t open = text.find('['), close = text.find(']');
  if (open == absl::string_view::npos || close == absl::string_view::npos || close < open) {
    return std::string(absl::StripAsciiWhitespace(text));
  }
  return std::string(text.substr(open + 1, close - open - 1));
}

std::optional<std::string> ReadCpuModel(absl::string_view cpuinfo) {
  const auto model = Field(cpuinfo, "model name");
  if (!model.has_value()) return std::nullopt;
  return std::string(*model);
}

}  // namespace covey::cli
