#include "examples/embeddings/training.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "examples/common/cluster.h"
#include "examples/common/process.h"
#include "examples/common/progress.h"
#include "examples/common/sparse_training.h"
#include "examples/embeddings/skip_gram.h"
#include "ps/client/worker.h"
#include "ps/model/model.h"
#include "ps/optim/rule.h"

namespace penstock::embeddings {
namespace {

// The names of the tables. A row of kIn is the vector of a word as the center
// of a window, which is the result of the training. A row of kOut is the vector
// of a word in the window of a center.
constexpr char kIn[] = "in";
constexpr char kOut[] = "out";

absl::StatusOr<ps::Model> ModelOf(const TrainingOptions& options) {
  auto staleness = examples::StalenessOf(options.staleness);
  if (!staleness.ok()) return staleness.status();
  ps::SparseSpec rows;
  rows.dim = options.dim;
  ps::TableSpec table;
  table.name = kOut;  // initialised with zeros
  table.rows = rows;
  table.staleness = *staleness;
  table.optimizer.rule = ps::optim::Rule::kAdagrad;
  table.optimizer.schedule.learning_rate = options.learning_rate;
  ps::Model model{{table}};
  rows.seed = options.sampler.seed;
  rows.initial.kind = ps::sparse::Initial::Kind::kUniform;
  rows.initial.high = 0.5F / static_cast<float>(options.dim);
  rows.initial.low = -rows.initial.high;
  table.name = kIn;
  table.rows = rows;
  model.tables.push_back(std::move(table));
  return model;
}

std::vector<uint64_t> IdsOf(const Vocabulary& vocabulary,
                            const std::vector<uint32_t>& words) {
  std::vector<uint64_t> ids;
  ids.reserve(words.size());
  for (uint32_t word : words) ids.push_back(vocabulary.ids[word]);
  return ids;
}

absl::StatusOr<tensor::Tensor> ZerosLike(const tensor::Tensor& tensor) {
  auto zeros = tensor::Tensor::Allocate(tensor.dtype(), tensor.shape());
  if (!zeros.ok()) return zeros.status();
  auto values = zeros->mutable_flat<float>();
  if (!values.ok()) return values.status();
  std::fill(values->begin(), values->end(), 0.0F);
  return zeros;
}

// The gradients of a batch, for the rows that were pulled for it.
struct Step {
  tensor::Tensor in;
  tensor::Tensor out;
  double loss;
};

absl::StatusOr<Step> Compute(const Batch& batch, const ps::Pulled& pulled) {
  auto in = pulled.Rows(0).Aligned();
  if (!in.ok()) return in.status();
  auto out = pulled.Rows(1).Aligned();
  if (!out.ok()) return out.status();
  auto in_gradients = ZerosLike(*in);
  if (!in_gradients.ok()) return in_gradients.status();
  auto out_gradients = ZerosLike(*out);
  if (!out_gradients.ok()) return out_gradients.status();
  auto in_values = in->flat<float>();
  auto out_values = out->flat<float>();
  auto in_sums = in_gradients->mutable_flat<float>();
  auto out_sums = out_gradients->mutable_flat<float>();
  for (const absl::Status& status : {in_values.status(), out_values.status(),
                                     in_sums.status(), out_sums.status()}) {
    if (!status.ok()) return status;
  }
  const Eigen::Index dim = in->shape()[1];
  const Eigen::Index centers = in->shape()[0];
  const Eigen::Index others = out->shape()[0];
  const double loss = AddGradients(
      batch, ConstRows(in_values->data(), centers, dim),
      ConstRows(out_values->data(), others, dim),
      Rows(in_sums->data(), centers, dim), Rows(out_sums->data(), others, dim));
  return Step{*std::move(in_gradients), *std::move(out_gradients), loss};
}

// Takes one step, increments `step`, and returns the mean loss.
absl::StatusOr<double> TakeStep(const Vocabulary& vocabulary,
                                const Batch& batch, ps::Worker* worker,
                                uint64_t* step) {
  std::vector<uint64_t> centers = IdsOf(vocabulary, batch.centers);
  std::vector<uint64_t> others = IdsOf(vocabulary, batch.others);
  ps::PullSpec spec;
  spec.rows = {{kIn, centers}, {kOut, others}};
  auto pulled = worker->Pull(*step, spec);
  if (!pulled.ok()) return pulled.status();
  *step = pulled->clock();  // later if other workers are ahead
  auto computed = Compute(batch, *pulled);
  if (!computed.ok()) return computed.status();
  auto pushed =
      worker->Push(*step, {{},
                           {{kIn, std::move(centers), computed->in},
                            {kOut, std::move(others), computed->out}}});
  if (!pushed.ok()) return pushed.status();
  ++*step;
  return computed->loss;
}

std::vector<std::string> WorkerFlags(const TrainingOptions& options) {
  return {absl::StrCat("--workers=", options.workers),
          absl::StrCat("--steps=", options.steps),
          absl::StrCat("--dim=", options.dim),
          absl::StrCat("--staleness=", options.staleness),
          absl::StrCat("--learning-rate=", options.learning_rate),
          absl::StrCat("--batch=", options.sampler.centers),
          absl::StrCat("--window=", options.sampler.window),
          absl::StrCat("--negatives=", options.sampler.negatives),
          absl::StrCat("--subsample=", options.sampler.subsample),
          absl::StrCat("--seed=", options.sampler.seed)};
}

}  // namespace

absl::Status RunWorker(const std::vector<std::string>& servers, unsigned rank,
                       const TrainingOptions& options, const Corpus& corpus) {
  auto model = ModelOf(options);
  if (!model.ok()) return model.status();
  auto worker = examples::Join(servers, rank, *model);
  if (!worker.ok()) return worker.status();
  const size_t share = corpus.words.size() / options.workers;
  SamplerOptions own = options.sampler;
  own.seed += rank;
  Sampler sampler(&corpus, rank * share, (rank + 1) * share, own);
  examples::ProgressPrinter printer;
  const auto take_step = [&](ps::Worker* trainer, uint64_t* step) {
    auto loss = TakeStep(corpus.vocabulary, sampler.Next(), trainer, step);
    if (loss.ok()) printer.Add(*step, *loss);
    return loss.status();
  };
  return examples::Train(options.steps, take_step, *std::move(worker));
}

absl::StatusOr<tensor::Tensor> Train(const TrainingOptions& options,
                                     const Vocabulary& vocabulary,
                                     const examples::OnProgress& on_progress) {
  auto program = examples::FindProgram(
      "embeddings_worker", "../../examples/embeddings/embeddings_worker");
  if (!program.ok()) return program.status();
  auto cluster = examples::Cluster::Start(options.servers, options.workers);
  if (!cluster.ok()) return cluster.status();
  absl::Status status =
      (*cluster)->RunWorkers(*program, WorkerFlags(options), on_progress);
  if (!status.ok()) return status;
  auto vectors = examples::ReadRows((*cluster)->addresses(), kIn,
                                    vocabulary.ids, options.steps);
  status = (*cluster)->Stop();
  if (!status.ok()) return status;
  return vectors;
}

}  // namespace penstock::embeddings
