// Trains word vectors in several processes.

#ifndef PENSTOCK_EXAMPLES_EMBEDDINGS_TRAINING_H_
#define PENSTOCK_EXAMPLES_EMBEDDINGS_TRAINING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/common/progress.h"
#include "examples/embeddings/corpus.h"
#include "examples/embeddings/sampler.h"
#include "tensor_service/tensor.h"

namespace penstock::embeddings {

// The minimal number of a word's occurrences. The meaning of a rarer word
// cannot be learnt.
inline constexpr uint64_t kMinCount = 10;

struct TrainingOptions {
  unsigned servers = 2;
  unsigned workers = 2;
  unsigned steps = 1500;                // per worker
  unsigned dim = 64;                    // elements of a vector
  std::string staleness = "unlimited";  // in the notation of StalenessOf()
  double learning_rate = 0.2;           // of Adagrad
  SamplerOptions sampler;
};

// Runs one worker, which trains on its part of the text. Prints a line every 25
// steps: "step <steps done> <mean loss of these>".
absl::Status RunWorker(const std::vector<std::string>& servers, unsigned rank,
                       const TrainingOptions& options, const Corpus& corpus);

// Starts servers and workers (`embeddings_worker`), and returns the trained
// vectors, [words, dim], in the order of the vocabulary. Calls `on_progress`
// for the lines of rank 0.
absl::StatusOr<tensor::Tensor> Train(const TrainingOptions& options,
                                     const Vocabulary& vocabulary,
                                     const examples::OnProgress& on_progress);

}  // namespace penstock::embeddings

#endif  // PENSTOCK_EXAMPLES_EMBEDDINGS_TRAINING_H_
