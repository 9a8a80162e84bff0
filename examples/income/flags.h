// Flags that the demo and its workers share.

#ifndef PENSTOCK_EXAMPLES_INCOME_FLAGS_H_
#define PENSTOCK_EXAMPLES_INCOME_FLAGS_H_

#include <CLI/CLI.hpp>

#include "examples/common/flags.h"
#include "examples/income/training.h"

namespace penstock::income {

inline void AddFlags(TrainingOptions* options, CLI::App* app) {
  examples::AddWorkers(&options->workers, app);
  examples::AddStaleness(&options->staleness, app);
  app->add_option("--steps", options->steps,
                  "of each worker; 0: as many as make three passes")
      ->capture_default_str();
  app->add_option("--batch", options->batch, "examples of a worker's step")
      ->check(CLI::Range(1U, 1U << 14))
      ->capture_default_str();
  const auto add = [app](const char* name, double* value, double least,
                         const char* what) {
    app->add_option(name, *value, what)
        ->check(CLI::Range(least, 1e6))
        ->capture_default_str();
  };
  add("--alpha", &options->alpha, 1e-6, "FTRL's learning rate");
  add("--beta", &options->beta, 0, "FTRL's; larger: smaller first steps");
  add("--lambda1", &options->lambda1, 0, "L1; larger: more weights are 0");
  add("--lambda2", &options->lambda2, 0, "L2; larger: smaller weights");
}

}  // namespace penstock::income

#endif  // PENSTOCK_EXAMPLES_INCOME_FLAGS_H_
