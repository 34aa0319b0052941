// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace covey {

// "covey_server 0.1.0" and a newline: what --version of `program` prints.
std::string VersionLine(absl::string_view program);

// A program's configuration in layers: flag > environment > YAML file > default. One declaration
// per option gives all of them:
//
//   ServerConfig config;                        // the defaults
//   ConfigFile options("covey_server", "Holds shards of tables.");
//   options.Add("data-loops", &config.data_loops, "loops that serve shards; one per core");
//   options.Add("drain", &config.drain, "longest wait for requests at the end");
//   if (const auto code = options.LoadForMain(argc, argv)) return *code;
//
// reads --data-loops=4, COVEY_DATA_LOOPS=4, and `data_loops: 4` in the file that --config or
// COVEY_CONFIG names. Also gives --help, --version and --print-config, whose output is again such a
// file, with the origin of each value. Values: durations "500ms", "2s", "1h30m"; sizes "64KiB",
// "256MiB"; booleans "true", "false" (a bare flag is true). Negative durations and sizes are
// refused.
//
// Actor-confined; the fields outlive it.
class ConfigFile {
 public:
  // A number of bytes: a type of its own, so that sizes are parsed as such.
  struct Bytes {
    uint64_t* field;
  };

  ConfigFile(absl::string_view program, absl::string_view summary);

  void Add(absl::string_view name, std::string* field, absl::string_view help);
  void Add(absl::string_view name, bool* field, absl::string_view help);
  void Add(absl::string_view name, int32_t* field, absl::string_view help);
  void Add(absl::string_view name, uint32_t* field, absl::string_view help);
  void Add(absl::string_view name, uint64_t* field, absl::string_view help);
  void Add(absl::string_view name, double* field, absl::string_view help);
  void Add(absl::string_view name, absl::Duration* field, absl::string_view help);
  void Add(absl::string_view name, Bytes field, absl::string_view help);
  // Words with commas between, none of them empty. The flag may be given several times.
  void Add(absl::string_view name, std::vector<std::string>* field, absl::string_view help);
  // Any other type. `parse` stores the value or refuses it, with a reason that ends the sentence
  // `"x" is `. `print` shows the value in a form that `parse` takes.
  void Add(absl::string_view name, std::function<absl::Status(absl::string_view)> parse,
           std::function<std::string()> print, absl::string_view help);

  // Collects arguments that are not flags, and all arguments after "--", instead of refusing them.
  // `placeholder` stands for them in the help: "-- PROGRAM [ARGS]".
  void TakeRest(std::vector<std::string>* rest, absl::string_view placeholder);

  struct Outcome {
    // When set, print this and run nothing (--help, --version, --print-config).
    std::optional<std::string> print;
  };
  // Null when the variable is not set.
  using Environment = std::function<const char*(const char* name)>;
  // `arguments` without the program's name. On an error some fields may be set. INVALID_ARGUMENT:
  // one line that names the flag, variable or key, and the nearest known one.
  absl::StatusOr<Outcome> Load(const std::vector<std::string>& arguments,
                               const Environment& environment);
  // The same with the process's environment; prints errors and help. Returns the exit code when the
  // program is to end: 0 after --help, --version and --print-config, 2 after an error.
  std::optional<int> LoadForMain(int argc, const char* const* argv);

  // YAML with the origin of each value as a comment.
  std::string Print() const;
  // All options by name, in the order in which they were added.
  std::vector<std::pair<std::string, std::string>> Values() const;
  // The value's origin: "flag --x", "environment COVEY_X", "FILE:LINE", "default".
  std::string OriginOf(absl::string_view name) const;

 private:
  struct Option {
    std::string name;  // as in the flag: "data-loops"
    std::string help;
    std::function<absl::Status(absl::string_view)> parse;
    std::function<std::string()> print;
    bool is_switch = false;
    bool is_list = false;
    std::string origin = "default";
  };
  struct Flags;

  template <typename T>
  void AddField(absl::string_view name, T* field, absl::string_view help);
  absl::StatusOr<Flags> ReadFlags(const std::vector<std::string>& arguments) const;
  absl::Status ReadFile(const std::string& path);
  absl::Status Assign(Option& option, absl::string_view text, const std::string& origin);
  Option* Find(absl::string_view name);
  std::string Nearest(absl::string_view name) const;

  const std::string program_;
  const std::string summary_;
  std::vector<Option> options_;
  std::vector<std::string>* rest_ = nullptr;
  std::string placeholder_;
};

}  // namespace covey
