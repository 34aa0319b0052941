// SPDX-License-Identifier: Apache-2.0
#include "client/cli/cluster/host_script.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/cluster/shell_words.h"

namespace covey::cli {
namespace {

using State = ProcessReport::State;

constexpr std::pair<absl::string_view, State> kStates[] = {
    {"none", State::kNone},       {"running", State::kRunning}, {"differs", State::kDiffers},
    {"started", State::kStarted}, {"ended", State::kEnded},     {"absent", State::kAbsent}};

// How often a script looks whether processes have ended.
constexpr absl::Duration kLook = absl::Milliseconds(200);

// `alive NAME` sets pid. A zombie has ended.
constexpr char kFunctions[] = R"sh(
boot=$(cat /proc/sys/kernel/random/boot_id)
ticks_of() {
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  stat=${stat##*) }
  set -- $stat
  case $1 in Z | X) return 1 ;; esac
  shift 19
  echo "$1"
}
alive() {
  pid=
  read -r pid ticks when 2>/dev/null <"run/$1.pid" || return 1
  [ "$when" = "$boot" ] && [ "$(ticks_of "$pid")" = "$ticks" ]
}
say() { echo "covey $*"; }
state() {
  if alive "$1"; then
    say "$1" running "$pid"
  elif [ -f "run/$1.pid" ]; then
    say "$1" ended
  else
    say "$1" none
    return
  fi
  [ "$2" = 0 ] || tail -n "$2" "log/$1.log" 2>/dev/null | cut -c 1-500 | sed "s/^/covey $1 log /"
}
)sh";

// `start NAME COMMAND...`. The id of the process is that of the shell which becomes it.
constexpr char kStart[] = R"sh(
start() {
  name=$1
  shift
  if alive "$name"; then
    if printf '%s\n' "$@" | cmp -s - "run/$name.command"; then
      say "$name" running "$pid"
    else
      say "$name" differs "$pid"
    fi
    return
  fi
  rm -f "run/$name.pid"
  printf '%s\n' "$@" >"run/$name.command"
  [ ! -f "log/$name.log" ] || mv -f "log/$name.log" "log/$name.log.1"
  setsid sh -c 'echo "$$ $(cut -d " " -f 22 /proc/$$/stat) $2" >"run/$1.new" &&
    mv "run/$1.new" "run/$1.pid" && shift 2 && exec "$@"' \
    covey "$name" "$boot" "$@" </dev/null >"log/$name.log" 2>&1 9>&- &
  looks=0
  while [ ! -f "run/$name.pid" ] && [ "$looks" -lt 100 ]; do
    looks=$((looks + 1))
    sleep 0.05
  done
  pid=0
  read -r pid ticks when 2>/dev/null <"run/$name.pid"
  say "$name" started "$pid"
}
)sh";

// `take ROLE` takes over certificates, `check NAME PROGRAM` says what is not there.
constexpr char kTake[] = R"sh(
take() {
  [ -d "incoming/tls/$1" ] || return 0
  # Processes that read the folder just now read it again.
  if ! diff -r "incoming/tls/$1" "tls/$1" >/dev/null 2>&1; then
    rm -rf "tls/$1.old"
    [ ! -d "tls/$1" ] || mv "tls/$1" "tls/$1.old"
    mv "incoming/tls/$1" "tls/$1"
    chmod 700 "tls/$1"
    chmod 600 "tls/$1/node.key"
    rm -rf "tls/$1.old"
  fi
}
check() {
  case $2 in
    */*) [ -f "$2" ] && [ -x "$2" ] ;;
    *) command -v "$2" >/dev/null 2>&1 ;;
  esac || say "$1" absent
}
)sh";

// `stop NAME SIGNAL` asks a process once to end; a second SIGTERM might kill a program of the user.
constexpr char kStop[] = R"sh(
stop() {
  if alive "$1"; then
    if [ "$2" = KILL ] || [ "$(cat "run/$1.stopping" 2>/dev/null)" != "$pid" ]; then
      echo "$pid" >"run/$1.stopping"
      kill -s "$2" -- "-$pid"
    fi
  elif ! [ -f "run/$1.pid" ]; then
    say "$1" none
  fi
}
await() {
  while alive "$1" && [ "$looks" -gt 0 ]; do
    looks=$((looks - 1))
    sleep 0.2
  done
  if alive "$1"; then
    say "$1" running "$pid"
  elif [ -f "run/$1.pid" ]; then
    say "$1" ended
    rm -f "run/$1.pid" "run/$1.stopping"
  fi
}
)sh";

// Two commands at a time would start a process twice.
constexpr char kLock[] = R"sh(
exec 9>run/lock
flock -w 20 9 || { say - refused another covey cluster command works on this host; exit 0; }
)sh";

constexpr char kPath[] = "PATH=$PWD/bin:$PATH\nexport PATH\n";

std::string Enter(const std::string& folder) {
  return absl::StrCat("umask 077\ncd -- ", ShellWord(folder), " || exit 1\n");
}

// For questions: without the folder nothing was ever started.
std::string EnterIfThere(const std::string& folder, const std::vector<std::string>& names) {
  std::string none;
  for (const std::string& name : names) absl::StrAppend(&none, "say ", ShellWord(name), " none\n");
  return absl::StrCat("say() { echo \"covey $*\"; }\nif ! cd -- ", ShellWord(folder),
                      " 2>/dev/null || ! [ -d run ]; then\n", none, "exit 0\nfi\n");
}

// One call of `function` for each name.
std::string ForEach(absl::string_view function, const std::vector<std::string>& names,
                    absl::string_view more) {
  std::string calls;
  for (const std::string& name : names) {
    absl::StrAppend(&calls, function, " ", ShellWord(name), more, "\n");
  }
  return calls;
}

absl::string_view NameOf(StopSignal signal) {
  return signal == StopSignal::kKill ? "KILL" : "TERM";
}

}  // namespace

std::string PrepareScript(const std::string& folder, const std::vector<std::string>& names) {
  const std::string quoted = ShellWord(folder);
  return absl::StrCat("umask 077\nmkdir -p -- ", quoted, " && cd -- ", quoted,
                      " && mkdir -p bin tls log run && chmod 700 tls run &&\n"
                      "  rm -rf incoming && mkdir incoming incoming/tls incoming/bin || exit 1\n",
                      kFunctions, ForEach("state", names, " 0"));
}

std::string TakeScript(const std::string& folder, const std::vector<PlannedProcess>& processes) {
  std::string script = absl::StrCat(Enter(folder), kFunctions, kTake, kLock, kPath,
                                    "for each in incoming/bin/*; do\n"
                                    "  [ ! -f \"$each\" ] || mv -f \"$each\" bin/\ndone\n");
  for (const IdentityRole role : kIdentityRoles) {
    absl::StrAppend(&script, "take ", covey::NameOf(role), "\n");
  }
  absl::StrAppend(&script, "rm -rf incoming\n");
  for (const PlannedProcess& process : processes) {
    absl::StrAppend(&script, "check ", ShellWord(process.name), " ", ShellWord(process.program),
                    "\n");
  }
  return script;
}

std::string StartScript(const std::string& folder, const std::vector<PlannedProcess>& processes) {
  std::string script = absl::StrCat(Enter(folder), kFunctions, kStart, kLock, kPath);
  for (const PlannedProcess& process : processes) {
    absl::StrAppend(&script, "start ", ShellWord(process.name), " ", ShellLine(process.command),
                    "\n");
  }
  return script;
}

std::string StateScript(const std::string& folder, const std::vector<std::string>& names,
                        uint32_t log_lines) {
  return absl::StrCat(EnterIfThere(folder, names), kFunctions,
                      ForEach("state", names, absl::StrCat(" ", log_lines)));
}

std::string StopScript(const std::string& folder, const std::vector<std::string>& names,
                       const StopOrder& order) {
  std::string script =
      absl::StrCat(EnterIfThere(folder, names), kFunctions, kStop, kLock,
                   ForEach("stop", names, absl::StrCat(" ", NameOf(order.signal))));
  absl::StrAppend(&script, "looks=", order.wait / kLook, "\n", ForEach("await", names, ""));
  return script;
}

std::string LogsScript(const std::string& folder, const std::vector<std::string>& names,
                       const LogsOrder& order) {
  const std::string logs =
      absl::StrJoin(names, " ", [](std::string* text, const std::string& name) {
        absl::StrAppend(text, ShellWord(absl::StrCat("log/", name, ".log")));
      });
  // It ends with the connection, also while nothing is written.
  const std::string follow = order.is_followed ? " -F --pid=$PPID" : "";
  return absl::StrCat(EnterIfThere(folder, {}), "exec tail -v -n ", order.lines, follow, " -- ",
                      logs, "\n");
}

absl::string_view LogHead(absl::string_view line) {
  if (!absl::ConsumePrefix(&line, "==> log/") || !absl::ConsumeSuffix(&line, ".log <==")) return "";
  return line;
}

HostReport ReadHostReport(absl::string_view output) {
  HostReport report;
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, absl::MaxSplits(' ', 3));
    if (words.size() < 3 || words[0] != "covey") continue;
    const std::string rest(words.size() > 3 ? words[3] : "");
    if (words[2] == "refused") {
      report.refusal = rest;
      continue;
    }
    ProcessReport& process = report.processes[std::string(words[1])];
    if (words[2] == "log") {
      process.last_lines.push_back(rest);
      continue;
    }
    for (const auto& [name, state] : kStates) {
      if (words[2] != name) continue;
      process.state = state;
      if (!absl::SimpleAtoi(rest, &process.process_id)) process.process_id = 0;
    }
  }
  return report;
}

}  // namespace covey::cli
