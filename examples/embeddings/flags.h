// Flags that the demo and its workers share.

#ifndef PENSTOCK_EXAMPLES_EMBEDDINGS_FLAGS_H_
#define PENSTOCK_EXAMPLES_EMBEDDINGS_FLAGS_H_

#include <CLI/CLI.hpp>

#include "examples/common/flags.h"
#include "examples/embeddings/training.h"

namespace penstock::embeddings {

inline void AddFlags(TrainingOptions* options, CLI::App* app) {
  examples::AddWorkers(&options->workers, app);
  examples::AddStaleness(&options->staleness, app);
  const auto add = [app](const char* name, auto* value, auto least, auto most,
                         const char* what) {
    app->add_option(name, *value, what)
        ->check(CLI::Range(least, most))
        ->capture_default_str();
  };
  SamplerOptions* sampler = &options->sampler;
  add("--steps", &options->steps, 1, 1000000, "of each worker");
  add("--dim", &options->dim, 1, 1024, "elements of a vector");
  add("--learning-rate", &options->learning_rate, 1e-6, 10.0, "Adagrad's");
  add("--batch", &sampler->centers, 1, 1 << 14, "words of the text in a step");
  add("--window", &sampler->window, 1, 32, "words on either side, at most");
  add("--negatives", &sampler->negatives, 0, 64,
      "words drawn for each word nearby");
  add("--subsample", &sampler->subsample, 1e-6, 1.0,
      "words with a larger share of the text are partly skipped");
  app->add_option("--seed", sampler->seed, "of all that is drawn")
      ->capture_default_str();
}

}  // namespace penstock::embeddings

#endif  // PENSTOCK_EXAMPLES_EMBEDDINGS_FLAGS_H_
