// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/wordnet/options.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/examples/choices.h"

namespace covey::wordnet {
using examples::InRange;

absl::Status Options::Validate() const {
  COVEY_RETURN_IF_ERROR(InRange("--passes", passes, 1, 1000));
  COVEY_RETURN_IF_ERROR(InRange("--batch", batch, 1, 65'536));
  COVEY_RETURN_IF_ERROR(InRange("--negatives", negatives, 1, 65'536));
  COVEY_RETURN_IF_ERROR(InRange("--width", width, 2, 1024));
  if (width % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--width is ", width, "; choose an even number, for real and imaginary parts"));
  }
  COVEY_RETURN_IF_ERROR(InRange("--learning-rate", learning_rate, 1e-6, 10));
  COVEY_RETURN_IF_ERROR(InRange("--n3", n3, 0, 10));
  COVEY_RETURN_IF_ERROR(InRange("--relation-mean", relation_mean, -10, 10));
  COVEY_RETURN_IF_ERROR(InRange("--neighbors-min", neighbors_min, 1, 1000));
  return InRange("--held-out", held_out, 1, 50'000);
}

void Options::AddTo(ConfigFile& options) {
  options.Add(
      "split",
      [this](absl::string_view text) -> absl::Status {
        COVEY_ASSIGN_OR_RETURN(split, ParseSplit(text));
        return absl::OkStatus();
      },
      [this] { return std::string(SplitName(split)); },
      "rr: facts are held out one by one, as in WN18RR; strict: all facts of two synsets together");
  options.Add(
      "evaluate",
      [this](absl::string_view text) {
        if (text != "test" && text != "validation") {
          return absl::InvalidArgumentError("not accepted; choose test or validation");
        }
        evaluate = text == "test" ? Part::kTest : Part::kValidation;
        return absl::OkStatus();
      },
      [this] { return std::string(evaluate == Part::kTest ? "test" : "validation"); },
      "facts whose questions are asked at the end: test, or validation, for tuning");
  options.Add("passes", &passes, "passes over the training facts");
  options.Add("batch", &batch, "questions of a worker's step");
  options.Add("negatives", &negatives, "random entities that the questions of a step share");
  options.Add("width", &width, "elements of a row, half of them imaginary parts");
  options.Add("learning-rate", &learning_rate, "of Adagrad");
  options.Add("n3", &n3, "coefficient of the regularizer: the cubes of absolute values");
  options.Add("relation-mean", &relation_mean,
              "mean of the relations' first values; 1 is a control that fails");
  options.Add("untrained", &untrained, "do not train: a control that fails");
  options.Add("neighbors-min", &neighbors_min,
              "neighbors of a synset that takes part; more = faster");
  options.Add("held-out", &held_out, "facts held out for the test, and as many for validation");
  options.Add("seed", &seed, "seed of the split, of initial values and of the order");
  options.Add("data-dir", &data_dir, "folder with data.noun, data.verb, data.adj and data.adv");
}

}  // namespace covey::wordnet
