// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/wordnet/train.h"

#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/parameter_client.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "worker/examples/client_beside_worker.h"
#include "worker/examples/rows/row_table.h"
#include "worker/examples/rows/tally.h"
#include "worker/examples/wordnet/complex_model.h"

namespace covey::wordnet {
namespace {

using client::ParameterClient;
using examples::PassReport;
using examples::RowTable;
using examples::SharedPasses;
using examples::Tally;
using worker::Worker;

constexpr double kEntityDeviation = 0.1;
constexpr double kRelationDeviation = 0.5;
// Questions that a worker answers in one step.
constexpr uint64_t kAnsweredAtOnce = 128;
// Sums of each relation in the tally.
constexpr size_t kSums = 4;

struct FirstValues {
  double mean = 0;
  double deviation = 0;
  uint64_t seed = 0;
};

proto::TableSpec SpecOf(absl::string_view name, const Options& options, const FirstValues& first) {
  proto::TableSpec spec = examples::RowsSpec(name, static_cast<uint32_t>(options.width));
  spec.mutable_initializer()->set_kind(proto::Initializer::NORMAL);
  spec.mutable_initializer()->set_a(static_cast<float>(first.mean));
  spec.mutable_initializer()->set_b(static_cast<float>(first.deviation));
  spec.mutable_initializer()->set_seed(first.seed);
  spec.mutable_optimizer()->set_kind(proto::Optimizer::ADAGRAD);
  spec.mutable_learning_rate()->set_base(options.learning_rate);
  return spec;
}

std::vector<double> Flatten(const Ranking& ranking) {
  std::vector<double> flat;
  for (const RankSums& sums : ranking) {
    flat.insert(flat.end(), {sums.questions, sums.reciprocal, sums.first, sums.first_ten});
  }
  return flat;
}

Ranking Unflatten(std::span<const double> flat) {
  Ranking ranking;
  for (size_t i = 0; i < ranking.size(); ++i) {
    const auto sums = flat.subspan(i * kSums, kSums);
    ranking[i] = {
        .questions = sums[0], .reciprocal = sums[1], .first = sums[2], .first_ten = sums[3]};
  }
  return ranking;
}

// The run of one worker, from start to end.
class Run {
 public:
  Run(const Options& options, Graph graph, uint32_t rank)
      : options_(options),
        graph_(std::move(graph)),
        random_(Random(options.seed).Split(rank + uint64_t{1})) {}

  absl::Status Open(Worker& worker, ParameterClient& client,
                    const SharedPasses::Surroundings& surroundings) {
    COVEY_ASSIGN_OR_RETURN(
        entities_, RowTable::Open(worker, client,
                                  SpecOf("wordnet/entities", options_,
                                         {.deviation = kEntityDeviation, .seed = options_.seed})));
    COVEY_ASSIGN_OR_RETURN(relations_, RowTable::Open(worker, client,
                                                      SpecOf("wordnet/relations", options_,
                                                             {.mean = options_.relation_mean,
                                                              .deviation = kRelationDeviation,
                                                              .seed = options_.seed + 1})));
    COVEY_ASSIGN_OR_RETURN(
        Tally tally,
        Tally::Open(client, examples::TallySpec("wordnet/ranks", kSums * kRelations.size())));
    tally_ = std::make_unique<Tally>(std::move(tally));
    COVEY_ASSIGN_OR_RETURN(passes_, SharedPasses::Open(worker, client, "wordnet", surroundings));
    return absl::OkStatus();
  }

  absl::StatusOr<Outcome> TrainAndAnswer(const std::function<void(absl::string_view)>& print) {
    Outcome outcome{.entities = graph_.entities.size(), .training_facts = graph_.training.size()};
    if (!options_.untrained) {
      COVEY_RETURN_IF_ERROR(passes_->Train(
          {.name = "wordnet/questions",
           .examples = 2 * graph_.training.size(),
           .batch = options_.batch,
           .passes = options_.passes,
           .seed = options_.seed},
          [this](std::span<const uint32_t> numbers) { return TrainBatch(numbers); },
          [&](const PassReport& report) {
            print(DescribePass(report, options_.passes, "questions"));
            outcome.trained += report.examples;
            outcome.duration += report.duration;
            outcome.loss = report.loss;
          }));
    }
    COVEY_RETURN_IF_ERROR(Answer());
    COVEY_ASSIGN_OR_RETURN(const std::vector<double> sums, tally_->Read());
    outcome.ranking = Unflatten(sums);
    return outcome;
  }

 private:
  absl::StatusOr<double> TrainBatch(std::span<const uint32_t> numbers) {
    const size_t count = numbers.size();
    if (count == 0) {
      COVEY_RETURN_IF_ERROR(entities_->Finish());
      COVEY_RETURN_IF_ERROR(relations_->Finish());
      return 0;
    }
    ids_.resize(2 * count + options_.negatives);
    relation_keys_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      const Question question = QuestionOf(graph_.training, numbers[i]);
      ids_[i] = question.entity;
      ids_[count + i] = question.answer;
      relation_keys_[i] = RelationRow(question.relation, question.is_inverse);
    }
    for (size_t i = 2 * count; i < ids_.size(); ++i) {
      ids_[i] = static_cast<uint32_t>(random_.Below(graph_.entities.size()));
    }
    entity_keys_.clear();
    for (const uint32_t id : ids_) entity_keys_.push_back(graph_.entities[id]);
    COVEY_RETURN_IF_ERROR(entities_->StartPull(entity_keys_));
    COVEY_RETURN_IF_ERROR(relations_->StartPull(relation_keys_));
    COVEY_RETURN_IF_ERROR(entities_->WaitForRows());
    COVEY_RETURN_IF_ERROR(relations_->WaitForRows());

    // Entity rows: heads, answers, negatives.
    const auto part = [&](auto rows, size_t which) {
      const size_t elements = count * options_.width;
      return which < 2 ? rows.subspan(which * elements, elements) : rows.subspan(2 * elements);
    };
    const std::span<const float> rows = entities_->rows();
    const std::span<float> gradients = entities_->gradients();
    const std::span<const uint32_t> ids = ids_;
    const double loss = model_.Compute({.width = options_.width,
                                        .heads = part(rows, 0),
                                        .relations = relations_->rows(),
                                        .answers = part(rows, 1),
                                        .negatives = part(rows, 2),
                                        .answer_ids = ids.subspan(count, count),
                                        .negative_ids = ids.subspan(2 * count)},
                                       {.entities = graph_.entities.size(), .n3 = options_.n3},
                                       {.heads = part(gradients, 0),
                                        .relations = relations_->gradients(),
                                        .answers = part(gradients, 1),
                                        .negatives = part(gradients, 2)});
    COVEY_RETURN_IF_ERROR(entities_->Push(count));
    COVEY_RETURN_IF_ERROR(relations_->Push(count));
    return loss / static_cast<double>(count);
  }

  // Ranks the answers of all held-out facts, with the other workers.
  absl::Status Answer() {
    std::vector<float> entities(graph_.entities.size() * options_.width);
    COVEY_RETURN_IF_ERROR(entities_->Read(graph_.entities, entities));
    std::vector<uint64_t> keys(2 * kRelations.size());
    std::iota(keys.begin(), keys.end(), 0);
    std::vector<float> relations(keys.size() * options_.width);
    COVEY_RETURN_IF_ERROR(relations_->Read(keys, relations));
    const KnownAnswers known(graph_);
    Ranker ranker(options_.width, entities, relations, known);
    const auto& facts = options_.evaluate == Part::kTest ? graph_.test : graph_.validation;
    return passes_->Visit(
        {.name = "wordnet/answers", .examples = 2 * facts.size(), .batch = kAnsweredAtOnce},
        [&](std::span<const uint32_t> numbers) -> absl::Status {
          if (numbers.empty()) return absl::OkStatus();
          std::vector<Question> questions;
          for (const uint32_t number : numbers) {
            questions.push_back(QuestionOf(facts, number));
          }
          Ranking ranking;
          ranker.Rank(questions, ranking);
          return tally_->Add(Flatten(ranking));
        });
  }

  const Options& options_;
  const Graph graph_;
  Random random_;
  std::unique_ptr<RowTable> entities_;
  std::unique_ptr<RowTable> relations_;
  std::unique_ptr<Tally> tally_;
  std::unique_ptr<SharedPasses> passes_;
  ComplexModel model_;
  std::vector<uint32_t> ids_;
  std::vector<uint64_t> entity_keys_;
  std::vector<uint64_t> relation_keys_;
};

}  // namespace

absl::StatusOr<Outcome> Train(Worker& worker, const worker::WorkerConfig& config,
                              const Options& options,
                              const SharedPasses::Surroundings& surroundings,
                              const std::function<void(absl::string_view)>& print) {
  COVEY_ASSIGN_OR_RETURN(const WordNet net, ReadWordNet(options.data_dir));
  COVEY_RETURN_IF_ERROR(CheckCounts(net));
  COVEY_ASSIGN_OR_RETURN(Graph graph, MakeGraph(net, {.split = options.split,
                                                      .neighbors_min = options.neighbors_min,
                                                      .held_out = options.held_out,
                                                      .seed = options.seed}));
  COVEY_ASSIGN_OR_RETURN(const auto client, examples::ConnectBesideWorker(config));
  Run run(options, std::move(graph), worker.rank());
  COVEY_RETURN_IF_ERROR(run.Open(worker, *client, surroundings));
  return run.TrainAndAnswer(print);
}

}  // namespace covey::wordnet
