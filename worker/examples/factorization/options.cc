// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/factorization/options.h"

#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "worker/examples/choices.h"

namespace covey::factorization {
namespace {

using examples::InRange;

template <typename Choice, size_t kCount>
using Names = std::array<std::pair<Choice, absl::string_view>, kCount>;

constexpr Names<Source, 4> kSources = {{{Source::kDependencies, "dependencies"},
                                        {Source::kRoles, "roles"},
                                        {Source::kLibsvm, "libsvm"},
                                        {Source::kCriteo, "criteo"}}};
constexpr Names<Model, 2> kModels = {{{Model::kFactorization, "fm"}, {Model::kLinear, "linear"}}};
constexpr Names<Optimizer, 2> kOptimizers = {
    {{Optimizer::kAdagrad, "adagrad"}, {Optimizer::kFtrl, "ftrl"}}};
constexpr Names<RoundMean, 2> kRoundMeans = {
    {{RoundMean::kOfAllPushes, "all"}, {RoundMean::kOfHolders, "holders"}}};
constexpr Names<RowType, 3> kRowTypes = {{{RowType::kFloat32, "float32"},
                                          {RowType::kBfloat16, "bfloat16"},
                                          {RowType::kFloat16, "float16"}}};
constexpr Names<Filter, 3> kFilters = {
    {{Filter::kNone, "none"}, {Filter::kKkt, "kkt"}, {Filter::kSignificance, "significance"}}};
constexpr Names<HeldOut, 2> kParts = {
    {{HeldOut::kTest, "test"}, {HeldOut::kValidation, "validation"}}};

template <typename Choice, size_t kCount>
absl::string_view NameOf(Choice choice, const Names<Choice, kCount>& names) {
  for (const auto& [value, name] : names) {
    if (value == choice) return name;
  }
  return "";
}

template <typename Choice, size_t kCount>
void AddChoice(ConfigFile& options, absl::string_view flag, Choice* field,
               const Names<Choice, kCount>& names, absl::string_view help) {
  options.Add(
      flag,
      [field, &names](absl::string_view text) {
        for (const auto& [value, name] : names) {
          if (text != name) continue;
          *field = value;
          return absl::OkStatus();
        }
        const std::string choices = absl::StrJoin(
            names, ", ",
            [](std::string* out, const auto& entry) { absl::StrAppend(out, entry.second); });
        return absl::InvalidArgumentError(absl::StrCat("choose one of ", choices));
      },
      [field, &names] { return std::string(NameOf(*field, names)); }, help);
}

// Where it is not given, it follows from other options.
constexpr absl::string_view kAuto = "auto";

void AddOuterRate(ConfigFile& options, std::optional<double>* field) {
  options.Add(
      "outer-rate",
      [field](absl::string_view text) {
        double rate = 0;
        const bool is_auto = text == kAuto;
        if (!is_auto && !absl::SimpleAtod(text, &rate)) {
          return absl::InvalidArgumentError("a number or auto is expected");
        }
        *field = is_auto ? std::nullopt : std::optional(rate);
        return absl::OkStatus();
      },
      [field] { return field->has_value() ? absl::StrCat(**field) : std::string(kAuto); },
      "under local, the part of the mean of the groups' changes by which rows move; auto: the "
      "square root of the number of groups with --round-mean all, because each worker's Adagrad "
      "takes steps that are larger by that; 1 with holders");
}

}  // namespace

double Options::OuterRate(uint32_t groups) const {
  if (outer_rate) return *outer_rate;
  return round_mean == RoundMean::kOfAllPushes ? std::sqrt(static_cast<double>(groups)) : 1;
}

absl::string_view SourceName(Source source) { return NameOf(source, kSources); }
absl::string_view ModelName(Model model) { return NameOf(model, kModels); }
absl::string_view FilterName(Filter filter) { return NameOf(filter, kFilters); }

absl::Status Options::Validate() const {
  COVEY_RETURN_IF_ERROR(InRange("--factors", factors, 1, 1024));
  COVEY_RETURN_IF_ERROR(InRange("--passes", passes, 1, 1000));
  COVEY_RETURN_IF_ERROR(InRange("--batch", batch, 1, 65'536));
  COVEY_RETURN_IF_ERROR(InRange("--learning-rate", learning_rate, 1e-6, 10));
  if (outer_rate) COVEY_RETURN_IF_ERROR(InRange("--outer-rate", *outer_rate, 0.001, 100));
  COVEY_RETURN_IF_ERROR(InRange("--admit-after", admit_after, 1, kAdmitAfterMax));
  COVEY_RETURN_IF_ERROR(InRange("--l1", l1, 0, 1000));
  COVEY_RETURN_IF_ERROR(InRange("--l2", l2, 0, 10));
  COVEY_RETURN_IF_ERROR(InRange("--significance", significance, 0, 1000));
  COVEY_RETURN_IF_ERROR(InRange("--filter-pieces", filter_pieces, 1, 16));
  COVEY_RETURN_IF_ERROR(InRange("--unfiltered-passes", unfiltered_passes, 0, 1000));
  const bool has_files = source == Source::kLibsvm || source == Source::kCriteo;
  if (has_files && (train_file.empty() || test_file.empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat("--data ", SourceName(source),
                     " needs files; name them with --train-file and --test-file"));
  }
  if (!has_files && !(train_file.empty() && test_file.empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat("--data is ", SourceName(source),
                     ", which reads no files; choose libsvm or criteo, or leave out --train-file "
                     "and --test-file"));
  }
  if (l1 > 0 && optimizer != Optimizer::kFtrl) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--l1 is ", l1, ", and only FTRL has it; add --optimizer ftrl, or leave it 0"));
  }
  if (filter == Filter::kKkt && l1 == 0) {
    return absl::InvalidArgumentError(
        "--filter kkt holds back gradients below the coefficient of the L1 norm, and --l1 is 0; "
        "add --l1 1, or choose --filter significance");
  }
  if (contract.kind == Contract::Kind::kBsp) {
    return absl::InvalidArgumentError(
        "--contract is bsp, under which groups push, and here each worker does; choose local:1, "
        "buffered:N with all N workers, or async");
  }
  if (contract.kind == Contract::Kind::kLocal &&
      (optimizer == Optimizer::kFtrl || filter != Filter::kNone)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--contract is ", ContractName(contract), ", whose pushes are no gradients; leave out ",
        optimizer == Optimizer::kFtrl ? "--optimizer ftrl" : "--filter"));
  }
  if (outer_rate && contract.kind != Contract::Kind::kLocal) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--outer-rate is ", *outer_rate, ", and --contract is ", ContractName(contract),
        ", which has no outer optimizer; choose local:H, or leave it out"));
  }
  if (round_mean != RoundMean::kOfAllPushes && contract.kind != Contract::Kind::kLocal) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--round-mean is ", NameOf(round_mean, kRoundMeans), ", and --contract is ",
        ContractName(contract), ", which has no rounds; choose local:H, or leave it out"));
  }
  if (objective && optimizer != Optimizer::kFtrl) {
    return absl::InvalidArgumentError(
        "--objective is what FTRL minimizes; add --optimizer ftrl, or leave it out");
  }
  if (model == Model::kFactorization && optimizer == Optimizer::kFtrl) {
    return absl::InvalidArgumentError(
        "--optimizer ftrl begins at zero, from which factors never move; add --model linear");
  }
  return absl::OkStatus();
}

void Options::AddTo(ConfigFile& options) {
  AddChoice(options, "data", &source, kSources,
            "dependencies: which Debian package depends on which; roles: which is a program; "
            "libsvm and criteo: files of these formats");
  options.Add("index", &index,
              "file with the index of packages; empty = what `apt-cache dumpavail` prints");
  options.Add("train-file", &train_file, "samples to train with, plain or compressed by gzip");
  options.Add("test-file", &test_file, "samples by which the model is measured");
  AddChoice(options, "evaluate", &evaluate, kParts,
            "packages by which the model is measured: test, or validation, for tuning");
  AddChoice(options, "model", &model, kModels,
            "fm: factorization machine; linear: weights alone (logistic regression)");
  options.Add("factors", &factors, "numbers of a feature besides its weight");
  AddChoice(options, "optimizer", &optimizer, kOptimizers,
            "adagrad, or ftrl, which makes weights zero; for --model linear");
  examples::AddContract(options, &contract);
  AddChoice(options, "round-mean", &round_mean, kRoundMeans,
            "under local, over which groups the mean of a row's changes is: all, or holders, which "
            "are those that touched it in the round");
  AddOuterRate(options, &outer_rate);
  options.Add("passes", &passes, "passes over the training samples");
  options.Add("batch", &batch, "samples of a worker's step");
  options.Add("learning-rate", &learning_rate, "of Adagrad; the alpha of FTRL");
  AddChoice(options, "row-type", &row_type, kRowTypes,
            "how servers store rows: float32, or bfloat16 or float16 in half of the memory");
  options.Add("admit-after", &admit_after,
              "updates that hold a feature until it has a row; keeps rare ones out");
  options.Add("l2", &l2,
              "coefficient of the L2 norm; with adagrad for each occurrence of a feature");
  options.Add("l1", &l1, "coefficient of the L1 norm; for ftrl");
  AddChoice(options, "filter", &filter, kFilters,
            "which gradients wait until they are larger. kkt: those of zero weights, below --l1; "
            "significance: those that are small beside their rows");
  options.Add("significance", &significance,
              "for --filter significance: part of a row's norm that its gradient has to reach; "
              "falls with 1/sqrt(steps)");
  options.Add("filter-pieces", &filter_pieces,
              "pieces in which a gradient that has waited goes at most");
  options.Add("unfiltered-passes", &unfiltered_passes, "passes at the end without the filter");
  options.Add("objective", &objective,
              "also measure what FTRL minimizes, by the training samples: one more pass");
  options.Add("untrained", &untrained, "do not train: a control that fails");
  options.Add("seed", &seed, "seed of first values, of drawn samples and of the order");
}

}  // namespace covey::factorization
