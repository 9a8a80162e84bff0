// The flags that the demo and its workers have in common.

#ifndef PENSTOCK_EXAMPLES_INCOME_FLAGS_H_
#define PENSTOCK_EXAMPLES_INCOME_FLAGS_H_

#include <CLI/CLI.hpp>

#include "examples/income/training.h"

namespace penstock::income {

inline void AddFlags(TrainingOptions* options, CLI::App* app) {
  app->add_option("--workers", options->workers)
      ->check(CLI::Range(1u, 64u))
      ->capture_default_str();
  app->add_option("--steps", options->steps,
                  "of each worker; 0: as many as make three passes");
  app->add_option("--batch", options->batch, "examples of a worker's step")
      ->check(CLI::Range(1u, 1u << 20))
      ->capture_default_str();
  app->add_option("--staleness", options->staleness,
                  "steps that a worker may be ahead of the slowest: 0 "
                  "(synchronous), a number, or 'unlimited' (asynchronous)")
      ->capture_default_str();
  app->add_option("--alpha", options->alpha, "FTRL's learning rate")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--beta", options->beta, "FTRL's")->capture_default_str();
  app->add_option("--lambda1", options->lambda1, "L1: makes weights 0")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app->add_option("--lambda2", options->lambda2, "L2")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

}  // namespace penstock::income

#endif  // PENSTOCK_EXAMPLES_INCOME_FLAGS_H_
