#include "examples/income/training.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "examples/common/cluster.h"
#include "examples/common/process.h"
#include "examples/common/progress.h"
#include "examples/common/sparse_training.h"
#include "examples/income/logistic.h"
#include "ps/client/worker.h"
#include "ps/model/model.h"
#include "ps/optim/rule.h"
#include "tensor_service/tensor.h"

namespace penstock::income {
namespace {

constexpr char kTable[] = "weights";
constexpr unsigned kPasses = 3;

absl::StatusOr<ps::Model> ModelOf(const TrainingOptions& options) {
  auto staleness = examples::StalenessOf(options.staleness);
  if (!staleness.ok()) return staleness.status();
  ps::SparseSpec rows;
  rows.dim = 1;
  ps::TableSpec table;
  table.name = kTable;
  table.rows = rows;
  table.staleness = *staleness;
  table.optimizer.rule = ps::optim::Rule::kFtrl;
  table.optimizer.schedule.learning_rate = options.alpha;
  table.optimizer.ftrl_beta = options.beta;
  table.optimizer.lambda1 = options.lambda1;
  table.optimizer.lambda2 = options.lambda2;
  return ps::Model{{table}};
}

// Takes one step, increments `step`, and returns the mean loss.
absl::StatusOr<double> TakeStep(const std::vector<Example>& batch,
                                ps::Worker* worker, uint64_t* step) {
  const std::vector<uint64_t> ids = FeaturesOf(batch);
  ps::PullSpec spec;
  spec.rows.push_back({kTable, ids});
  auto pulled = worker->Pull(*step, spec);
  if (!pulled.ok()) return pulled.status();
  *step = pulled->clock();  // later if other workers are ahead
  auto rows = pulled->Rows(0).Aligned();
  if (!rows.ok()) return rows.status();
  auto weights = rows->flat<float>();
  if (!weights.ok()) return weights.status();
  const std::vector<float> predicted = Predict(batch, *weights);
  const std::vector<float> gradients = Gradients(batch, predicted);
  auto tensor = tensor::Tensor::Of<float>({static_cast<int64_t>(ids.size()), 1},
                                          gradients);
  if (!tensor.ok()) return tensor.status();
  auto pushed = worker->Push(*step, {{}, {{kTable, ids, *std::move(tensor)}}});
  if (!pushed.ok()) return pushed.status();
  ++*step;
  return LogLoss(batch, predicted);
}

std::vector<std::string> WorkerFlags(const TrainingOptions& options) {
  return {absl::StrCat("--workers=", options.workers),
          absl::StrCat("--steps=", options.steps),
          absl::StrCat("--batch=", options.batch),
          absl::StrCat("--staleness=", options.staleness),
          absl::StrCat("--alpha=", options.alpha),
          absl::StrCat("--beta=", options.beta),
          absl::StrCat("--lambda1=", options.lambda1),
          absl::StrCat("--lambda2=", options.lambda2)};
}

absl::StatusOr<std::vector<float>> ReadWeights(
    const std::vector<std::string>& servers, const std::vector<uint64_t>& ids,
    uint64_t step) {
  auto rows = examples::ReadRows(servers, kTable, ids, step);
  if (!rows.ok()) return rows.status();
  auto values = rows->flat<float>();
  if (!values.ok()) return values.status();
  return std::vector<float>(values->begin(), values->end());
}

absl::StatusOr<Weights> ReadAll(const std::vector<std::string>& servers,
                                const Dataset& dataset, uint64_t step) {
  Weights weights;
  weights.ids = FeaturesOf(dataset.train);
  std::sort(weights.ids.begin(), weights.ids.end());
  weights.ids.erase(std::unique(weights.ids.begin(), weights.ids.end()),
                    weights.ids.end());
  auto values = ReadWeights(servers, weights.ids, step);
  if (!values.ok()) return values.status();
  weights.values = *std::move(values);
  auto test = ReadWeights(servers, FeaturesOf(dataset.test), step);
  if (!test.ok()) return test.status();
  weights.test = *std::move(test);
  return weights;
}

}  // namespace

unsigned StepsOf(const TrainingOptions& options, size_t examples) {
  if (options.steps > 0) return options.steps;
  const size_t step = size_t{options.batch} * options.workers;
  return static_cast<unsigned>((kPasses * examples + step - 1) / step);
}

std::vector<Example> BatchOf(absl::Span<const Example> examples, uint64_t step,
                             unsigned rank, unsigned workers, unsigned batch) {
  std::vector<Example> chosen;
  chosen.reserve(batch);
  for (unsigned i = 0; i < batch; ++i) {
    const uint64_t at = (step * workers + rank) * batch + i;
    chosen.push_back(examples[at % examples.size()]);
  }
  return chosen;
}

absl::Status RunWorker(const std::vector<std::string>& servers, unsigned rank,
                       const TrainingOptions& options,
                       absl::Span<const Example> train) {
  auto model = ModelOf(options);
  if (!model.ok()) return model.status();
  auto worker = examples::Join(servers, rank, *model);
  if (!worker.ok()) return worker.status();
  const unsigned steps = StepsOf(options, train.size());
  examples::ProgressPrinter printer;
  const auto take_step = [&](ps::Worker* trainer, uint64_t* step) {
    auto loss =
        TakeStep(BatchOf(train, *step, rank, options.workers, options.batch),
                 trainer, step);
    if (loss.ok()) printer.Add(*step, *loss);
    return loss.status();
  };
  return examples::Train(steps, take_step, *std::move(worker));
}

absl::StatusOr<Weights> Train(const TrainingOptions& options,
                              const Dataset& dataset,
                              const examples::OnProgress& on_progress) {
  auto program = examples::FindProgram("income_worker",
                                       "../../examples/income/income_worker");
  if (!program.ok()) return program.status();
  auto cluster = examples::Cluster::Start(options.servers, options.workers);
  if (!cluster.ok()) return cluster.status();
  absl::Status status =
      (*cluster)->RunWorkers(*program, WorkerFlags(options), on_progress);
  if (!status.ok()) return status;
  auto weights = ReadAll((*cluster)->addresses(), dataset,
                         StepsOf(options, dataset.train.size()));
  status = (*cluster)->Stop();
  if (!status.ok()) return status;
  return weights;
}

}  // namespace penstock::income
