// Flags that the sparse training examples share.

#ifndef PENSTOCK_EXAMPLES_COMMON_FLAGS_H_
#define PENSTOCK_EXAMPLES_COMMON_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "examples/common/sparse_training.h"

namespace penstock::examples {

inline void AddServers(unsigned* servers, CLI::App* app) {
  app->add_option("--servers", *servers, "parameter servers, a process each")
      ->check(CLI::Range(1U, 64U))
      ->capture_default_str();
}

inline void AddWorkers(unsigned* workers, CLI::App* app) {
  app->add_option("--workers", *workers, "processes that train")
      ->check(CLI::Range(1U, 64U))
      ->capture_default_str();
}

inline void AddStaleness(std::string* staleness, CLI::App* app) {
  const CLI::Validator valid(
      [](const std::string& text) {
        return std::string(StalenessOf(text).status().message());
      },
      "STEPS|unlimited");
  app->add_option("--staleness", *staleness,
                  "steps that a worker may be ahead of the slowest: 0 "
                  "(synchronous), a number (bounded), or 'unlimited' "
                  "(asynchronous)")
      ->check(valid)
      ->capture_default_str();
}

}  // namespace penstock::examples

#endif  // PENSTOCK_EXAMPLES_COMMON_FLAGS_H_
