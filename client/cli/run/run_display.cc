// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/run_display.h"

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/run/progress_view.h"
#include "client/step_times.h"

namespace covey::cli {
namespace {

using Stream = RunProcesses::Stream;

constexpr absl::Duration kProgressLine = absl::Seconds(2);
constexpr char kOwnLabel[] = "covey";

}  // namespace

void RunDisplay::Say(absl::string_view line) {
  terminal_.Print(Terminal::Stream::kError, kOwnLabel, line);
}

void RunDisplay::TakeLine(const RunProcess& from, Stream stream, absl::string_view line,
                          bool is_over) {
  const bool is_program = from.role == RunSupervisor::Role::kWorker;
  // The scheduler reports the same for all groups at once.
  if (is_program && absl::StartsWith(line, "progress {")) return;
  if (is_program && absl::StartsWith(line, client::kStepSentence)) {
    step_sentence_ = std::string(line);
    return;
  }
  const bool is_shutdown = !is_program && is_over;
  if ((ShowsEverything() && !is_shutdown) || (is_program && stream == Stream::kError)) {
    terminal_.Print(
        stream == Stream::kOutput ? Terminal::Stream::kOutput : Terminal::Stream::kError,
        from.name(), line);
  }
  if (is_program && stream == Stream::kOutput && absl::ConsumePrefix(&line, "result ")) {
    TakeResult(from.name(), line);
  }
}

void RunDisplay::TakeResult(absl::string_view worker, absl::string_view text) {
  const auto json = nlohmann::json::parse(text.begin(), text.end(), nullptr,
                                          /*allow_exceptions=*/false);
  if (json.is_object()) {
    result_ = std::string(text);
  } else {
    Say(absl::StrCat("what ", worker,
                     " printed after 'result' is not a JSON object and is ignored"));
  }
}

void RunDisplay::ShowProgress(absl::Time now, absl::Duration elapsed,
                              const proto::StatusReply& status) {
  // Otherwise the caller shows progress of its own.
  if (!ShowsEverything()) return;
  if (terminal_.interactive()) {
    terminal_.SetBlock(ProgressBlock(status, elapsed, terminal_.block_lines_max()));
  } else if (now >= next_progress_line_) {
    next_progress_line_ = now + kProgressLine;
    Say(ProgressLine(status, elapsed));
  }
}

void RunDisplay::ShowLastLines(const RunProcess& process) {
  if (!process.output->last_lines().empty()) {
    Say(absl::StrCat("last lines of ", process.name(), ":"));
  }
  for (const std::string& line : process.output->last_lines()) {
    terminal_.Print(Terminal::Stream::kError, process.name(), line);
  }
}

}  // namespace covey::cli
