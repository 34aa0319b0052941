// SPDX-License-Identifier: Apache-2.0
#include "client/cli/cluster/remote_hosts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/cluster/shell_words.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

// The exit code of ssh for its own errors.
constexpr int kSshFailed = 255;
constexpr absl::Duration kCopyDeadline = absl::Minutes(10);
constexpr absl::Duration kDisconnectDeadline = absl::Seconds(2);
// Of what a host prints on standard error, the last lines say why.
constexpr size_t kReasonLinesMax = 3;

std::unique_ptr<TemporaryFolder> MakeSockets() {
  auto folder = TemporaryFolder::Make();
  return folder.ok() ? *std::move(folder) : nullptr;
}

std::string ReasonOf(const std::string& error) {
  std::vector<std::string> lines =
      absl::StrSplit(error, absl::ByAnyChar("\r\n"), absl::SkipWhitespace());
  if (lines.size() > kReasonLinesMax) lines.erase(lines.begin(), lines.end() - kReasonLinesMax);
  for (std::string& line : lines) absl::StripAsciiWhitespace(&line);
  return absl::StrJoin(lines, " | ");
}

}  // namespace

RemoteHosts::RemoteHosts(const ClusterFile& file)
    : file_(file),
      sockets_(MakeSockets()),
      commands_(file, sockets_ == nullptr ? "" : sockets_->path()) {}

RemoteHosts::~RemoteHosts() {
  std::vector<BatchCommand> ends;
  for (size_t host = 0; host < file_.hosts.size(); ++host) {
    std::vector<std::string> words = commands_.Disconnect(host);
    if (words.empty()) continue;
    ends.push_back({.program = {.name = "ssh", .arguments = std::move(words), .environment = {}},
                    .deadline = kDisconnectDeadline});
  }
  static_cast<void>(RunBatch(ends, file_.ssh.at_once));
}

absl::StatusOr<RemoteHosts::Answers> RemoteHosts::Run(const std::vector<Script>& scripts,
                                                      absl::Duration deadline) {
  std::vector<size_t> hosts;
  std::vector<BatchCommand> commands;
  for (const Script& script : scripts) {
    hosts.push_back(script.host);
    commands.push_back({.program = {.name = file_.hosts[script.host].name,
                                    .arguments = commands_.Run(script.host, script.text),
                                    .environment = {}},
                        .deadline = file_.ssh.connect_deadline + deadline});
  }
  return RunAll(hosts, commands);
}

absl::StatusOr<RemoteHosts::Answers> RemoteHosts::Copy(const std::vector<Files>& files) {
  std::vector<size_t> hosts;
  std::vector<BatchCommand> commands;
  for (const Files& each : files) {
    const std::string folder = absl::StrCat(file_.hosts[each.host].folder, "/", each.folder);
    hosts.push_back(each.host);
    commands.push_back({.program = {.name = file_.hosts[each.host].name,
                                    .arguments = commands_.Copy(each.host, each.paths, folder),
                                    .environment = {}},
                        .deadline = file_.ssh.connect_deadline + kCopyDeadline});
  }
  return RunAll(hosts, commands);
}

absl::StatusOr<RemoteHosts::Answers> RemoteHosts::RunAll(
    const std::vector<size_t>& hosts, const std::vector<BatchCommand>& commands) {
  COVEY_ASSIGN_OR_RETURN(const std::vector<BatchOutcome> outcomes,
                         RunBatch(commands, file_.ssh.at_once));
  Answers answers;
  for (size_t i = 0; i < hosts.size(); ++i) answers.push_back(AnswerOf(hosts[i], outcomes[i]));
  return answers;
}

RemoteHosts::Answer RemoteHosts::AnswerOf(size_t host, const BatchOutcome& outcome) const {
  const ClusterFile::Host& of = file_.hosts[host];
  const std::string where = absl::StrCat(of.at, ": host ", of.name);
  Answer answer = {.host = host};
  if (absl::IsNotFound(outcome.status)) {
    answer.status = absl::FailedPreconditionError(
        absl::StrCat(where, ": this machine has no ssh or scp; install openssh-client"));
  } else if (!outcome.status.ok() || outcome.exit.code == kSshFailed) {
    const std::string reason =
        outcome.status.ok() ? ReasonOf(outcome.error) : std::string(outcome.status.message());
    answer.status = absl::UnavailableError(absl::StrCat(
        where, " is not reached: ", reason.empty() ? "ssh says nothing" : reason,
        "; see that this works without a question: ", ShellLine(commands_.Probe(host))));
  } else if (!outcome.exit.ok()) {
    const std::string reason = ReasonOf(outcome.error);
    answer.status = absl::FailedPreconditionError(
        absl::StrCat(where, ": ", reason.empty() ? Describe(outcome.exit) : reason,
                     "; mend this, or give the host another folder than ", of.folder));
  } else {
    answer.report = ReadHostReport(outcome.output);
    if (!answer.report.refusal.empty()) {
      answer.status = absl::FailedPreconditionError(
          absl::StrCat(where, ": ", answer.report.refusal, "; run this one again later"));
    }
  }
  return answer;
}

absl::Status FailureOf(const RemoteHosts::Answers& answers) {
  std::vector<std::string> lines;
  absl::StatusCode code = absl::StatusCode::kOk;
  for (const RemoteHosts::Answer& answer : answers) {
    if (answer.status.ok()) continue;
    lines.emplace_back(answer.status.message());
    if (code != absl::StatusCode::kUnavailable) code = answer.status.code();
  }
  if (lines.empty()) return absl::OkStatus();
  const size_t failures = lines.size();
  if (failures > kFailuresShown) {
    lines.resize(kFailuresShown);
    lines.push_back(absl::StrCat("and ", failures - kFailuresShown, " hosts more"));
  }
  return absl::Status(code, absl::StrJoin(lines, "\n"));
}

}  // namespace covey::cli
