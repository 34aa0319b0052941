// SPDX-License-Identifier: Apache-2.0
// A fuzz target as an ordinary test: it gives FuzzOne the seeds, the files of the corpus, and
// mutations of both, always the same. Works with every compiler.
//
//   NAME_fuzz [--corpus=FOLDER] [--mutations=N] [--first=N]
//   NAME_fuzz FILE...   replays these inputs only
//
// A mutation depends on its number and the corpus alone, so --first and --mutations=1 repeat one.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/random.h"
#include "common/fuzz/fuzz_target.h"
#include "common/fuzz/mutation.h"

// Of the sanitizers, where the program is built with one: runs `report` before it ends.
extern "C" void __sanitizer_set_death_callback(void (*report)()) __attribute__((weak));

namespace covey {
namespace {

constexpr uint64_t kMutations = 100'000;
// All memory of the process. No decoder may take more than its limits because an input says so.
constexpr rlim_t kMemoryBytesMax = rlim_t{512} << 20;
// Fewer accepted mutations test little more than refusals.
constexpr uint64_t kAcceptedShareMin = 200;

// What to say if the input that is being tried ends the process.
std::string& Current() {
  static std::string current;
  return current;
}

void Report() {
  [[maybe_unused]] const auto bytes = write(STDERR_FILENO, Current().data(), Current().size());
}

void ReportSignal(int number) {
  Report();
  signal(number, SIG_DFL);
  raise(number);
}

bool IsSanitized() { return __sanitizer_set_death_callback != nullptr; }

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::cerr << "cannot read " << path << "; check its name\n";
    std::exit(2);
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> FilesOf(const std::string& folder) {
  std::vector<std::string> paths;
  if (!std::filesystem::exists(folder)) return paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool Try(const std::string& input, const std::string& name) {
  Current() = absl::StrCat("\nThe input that failed: ", name, "\n");
  return FuzzOne({reinterpret_cast<const uint8_t*>(input.data()), input.size()});
}

int Main(int argc, char** argv) {
  std::string corpus;
  std::vector<std::string> files;
  uint64_t mutations = kMutations, first = 0;
  for (absl::string_view argument : std::vector<absl::string_view>(argv + 1, argv + argc)) {
    const absl::string_view given = argument;
    bool good = true;
    if (absl::ConsumePrefix(&argument, "--corpus=")) {
      corpus = std::string(argument);
    } else if (absl::ConsumePrefix(&argument, "--mutations=")) {
      good = absl::SimpleAtoi(argument, &mutations);
    } else if (absl::ConsumePrefix(&argument, "--first=")) {
      good = absl::SimpleAtoi(argument, &first);
    } else {
      good = !absl::ConsumePrefix(&argument, "--");
      files.emplace_back(argument);
    }
    if (!good) {
      std::cerr << given << " is no argument; common/fuzz/replay.cc lists them\n";
      return 2;
    }
  }

  for (const int number : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTERM}) {
    if (number == SIGTERM || !IsSanitized()) signal(number, ReportSignal);
  }
  if (IsSanitized()) {
    __sanitizer_set_death_callback(Report);
  } else {
    const rlimit limit = {kMemoryBytesMax, kMemoryBytesMax};
    setrlimit(RLIMIT_DATA, &limit);
  }

  for (const std::string& path : files) {
    std::cout << path << (Try(ReadFile(path), path) ? ": accepted\n" : ": refused\n");
  }
  if (!files.empty()) return 0;

  std::vector<std::string> inputs = FuzzSeeds();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!Try(inputs[i], absl::StrCat("seed ", i))) {
      std::cerr << "seed " << i << " is refused; make it one that FuzzOne accepts\n";
      return 1;
    }
  }
  for (const std::string& path : FilesOf(corpus)) {
    inputs.push_back(ReadFile(path));
    Try(inputs.back(), path);
  }
  uint64_t accepted = 0;
  for (uint64_t number = first; number < first + mutations; ++number) {
    Random random = Random(number).Split(1);
    const std::string input = Mutated(inputs, random);
    if (Try(input,
            absl::StrCat("mutation ", number, "; repeat it with --mutations=1 --first=", number))) {
      ++accepted;
    }
  }
  std::cout << inputs.size() << " inputs and " << mutations << " mutations, of which " << accepted
            << " were accepted\n";
  if (accepted * kAcceptedShareMin >= mutations || mutations < kAcceptedShareMin) return 0;
  std::cerr << "nearly all mutations are refused; let FuzzOne mend checksums and sizes first\n";
  return 1;
}

}  // namespace
}  // namespace covey

int main(int argc, char** argv) { return covey::Main(argc, argv); }
