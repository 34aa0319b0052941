// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/seed_fleet.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"

namespace covey::sim {
namespace {

// The protocol from child to parent, one line per message:
//   begin SEED WORKLOAD · bad TEXT · count NAME NUMBER · end EVENTS REPEATED · over
struct Child {
  pid_t process = 0;
  int pipe = -1;
  std::string unread;
  std::pair<uint64_t, std::string> at;
  bool over = false;
};

void Tell(int pipe, absl::string_view kind, absl::string_view text) {
  const std::string line = absl::StrCat(kind, " ", absl::StrReplaceAll(text, {{"\n", " "}}), "\n");
  for (size_t done = 0; done < line.size();) {
    const ssize_t wrote = write(pipe, line.data() + done, line.size() - done);
    if (wrote <= 0) _exit(1);
    done += static_cast<size_t>(wrote);
  }
}

[[noreturn]] void RunChild(const FleetOptions& options, uint32_t index, int pipe) {
  std::map<std::string, uint64_t> counts;
  for (uint64_t seed = options.first_seed + index; seed < options.first_seed + options.seeds;
       seed += options.jobs) {
    for (const std::string& workload : options.workloads) {
      Tell(pipe, "begin", absl::StrCat(seed, " ", workload));
      const SeedOptions run{.seed = seed,
                            .workload = workload,
                            .planted_bug = options.planted_bug,
                            .bent_slices = options.bent_slices};
      const SeedResult result = RunSeed(run);
      for (const std::string& violation : result.violations) Tell(pipe, "bad", violation);
      for (const auto& [name, count] : result.counts) counts[name] += count;
      const bool repeat = options.repeat_every > 0 && seed % options.repeat_every == 0;
      if (repeat && RunSeed(run).digest != result.digest) {
        Tell(pipe, "bad", "determinism: the same seed had another history the second time");
      }
      Tell(pipe, "end", absl::StrCat(result.events, " ", repeat ? 1 : 0));
    }
  }
  for (const auto& [name, count] : counts) Tell(pipe, "count", absl::StrCat(name, " ", count));
  Tell(pipe, "over", "");
  _exit(0);
}

uint64_t Number(absl::string_view text) {
  uint64_t number = 0;
  COVEY_CHECK(absl::SimpleAtoi(text, &number));
  return number;
}

void TakeLine(absl::string_view line, Child& child, FleetResult& result) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(line, absl::MaxSplits(' ', 1));
  const std::vector<absl::string_view> words = absl::StrSplit(parts.second, ' ');
  if (parts.first == "begin") {
    child.at = {Number(words[0]), std::string(words[1])};
  } else if (parts.first == "bad") {
    result.violations[child.at].emplace_back(parts.second);
  } else if (parts.first == "count") {
    result.counts[std::string(words[0])] += Number(words[1]);
  } else if (parts.first == "end") {
    ++result.runs;
    result.events += Number(words[0]);
    result.repeated += Number(words[1]);
  } else {
    child.over = true;
  }
}

// False once the child has closed its pipe.
bool TakeBytes(Child& child, FleetResult& result) {
  std::array<char, 65536> bytes;
  const ssize_t size = read(child.pipe, bytes.data(), bytes.size());
  if (size <= 0) return false;
  child.unread.append(bytes.data(), static_cast<size_t>(size));
  size_t start = 0;
  for (size_t end; (end = child.unread.find('\n', start)) != std::string::npos; start = end + 1) {
    TakeLine(absl::string_view(child.unread).substr(start, end - start), child, result);
  }
  child.unread.erase(0, start);
  return true;
}

}  // namespace

FleetResult RunFleet(const FleetOptions& options,
                     const std::function<void(uint64_t runs, uint64_t bad)>& progress) {
  FleetResult result;
  std::vector<Child> children;
  std::vector<pollfd> waits;
  for (uint32_t i = 0; i < options.jobs; ++i) {
    int ends[2];
    COVEY_CHECK(pipe(ends) == 0);
    const pid_t process = fork();
    COVEY_CHECK(process >= 0);
    if (process == 0) {
      close(ends[0]);
      RunChild(options, i, ends[1]);
    }
    close(ends[1]);
    children.push_back({.process = process, .pipe = ends[0]});
    waits.push_back({.fd = ends[0], .events = POLLIN, .revents = 0});
  }
  for (size_t running = children.size(); running > 0;) {
    COVEY_CHECK(poll(waits.data(), waits.size(), -1) > 0);
    for (size_t i = 0; i < children.size(); ++i) {
      if (waits[i].revents == 0 || TakeBytes(children[i], result)) continue;
      close(children[i].pipe);
      waits[i].fd = -1;  // poll ignores it from now on
      --running;
      int status = 0;
      waitpid(children[i].process, &status, 0);
      if (!children[i].over) {
        result.violations[children[i].at].push_back(
            absl::StrCat("crash: the process of this seed ended with wait status ", status,
                         "; its message is on standard error, its further seeds were not run"));
      }
    }
    progress(result.runs, result.violations.size());
  }
  return result;
}

}  // namespace covey::sim
