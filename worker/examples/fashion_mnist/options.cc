#include "worker/examples/fashion_mnist/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"

namespace covey::fashion_mnist {
namespace {

// Levenshtein's: how many letters to insert, delete or replace.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  // Distances from the letters of `a` read so far to each beginning of `b`.
  std::vector<size_t> distances(b.size() + 1);
  std::iota(distances.begin(), distances.end(), 0);
  for (const char letter : a) {
    size_t diagonal = distances[0]++;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (letter == b[j - 1] ? 0 : 1);
      diagonal = distances[j];
      distances[j] = std::min({replaced, distances[j] + 1, distances[j - 1] + 1});
    }
  }
  return distances.back();
}

absl::Status UnknownArgumentError(const CLI::App& app, const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  std::string nearest;
  size_t distance_min = std::numeric_limits<size_t>::max();
  for (const CLI::Option* option : app.get_options()) {
    const std::string known = option->get_name();
    const size_t distance = EditDistance(name, known);
    if (distance >= distance_min) continue;
    distance_min = distance;
    nearest = known;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "argument '", name, "' is not known; the nearest is ", nearest, ", and --help lists all"));
}

}  // namespace

absl::StatusOr<Options> ParseOptions(std::span<const char* const> arguments) {
  Options options;
  std::string contract = ContractName(options.contract);
  CLI::App app("Trains a perceptron on Fashion-MNIST as one worker of a Covey cluster.",
               "fashion_mnist");
  app.allow_extras();
  app.add_option("--contract", contract,
                 "how groups relate: bsp, ssp:N, async, buffered or buffered:K")
      ->capture_default_str();
  app.add_option("--epochs", options.epochs, "passes over the training data")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "samples per worker and step")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--learning-rate", options.learning_rate, "peak of the schedule")
      ->check(CLI::Range(1e-6, 1e2))
      ->capture_default_str();
  app.add_option("--momentum", options.momentum, "coefficient of Nesterov's method")
      ->check(CLI::Range(0.0, 0.9999))
      ->capture_default_str();
  app.add_option("--hidden", options.hidden, "neurons of the hidden layer")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of initial values and of the order of samples")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--data-dir", options.data_dir, "folder with the four files of the dataset")
      ->capture_default_str();

  // CLI11 wants the last argument first.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    options.help = app.help();
    return options;
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  if (const std::vector<std::string> unknown = app.remaining(); !unknown.empty()) {
    return UnknownArgumentError(app, unknown.front());
  }
  // CLI11's ranges let them pass.
  if (std::isnan(options.learning_rate) || std::isnan(options.momentum)) {
    return absl::InvalidArgumentError("--learning-rate and --momentum must be numbers, not NaN");
  }
  COVEY_ASSIGN_OR_RETURN(options.contract, ParseContract(contract));
  return options;
}

}  // namespace covey::fashion_mnist
