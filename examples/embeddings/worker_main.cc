// embeddings_worker: one worker of the training that the demo starts. Prints
// the lines of RunWorker() on standard output.

#include <iostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "examples/embeddings/corpus.h"
#include "examples/embeddings/flags.h"
#include "examples/embeddings/training.h"

int main(int argc, char** argv) {
  namespace embeddings = penstock::embeddings;
  std::vector<std::string> servers;
  unsigned rank = 0;
  embeddings::TrainingOptions options;
  CLI::App app("Embeddings: one worker of a training");
  app.add_option("--servers", servers, "addresses, with commas")
      ->delimiter(',')
      ->required();
  app.add_option("--rank", rank, "0 is the chief");
  embeddings::AddFlags(&options, &app);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status =
      embeddings::RunWorker(servers, rank, options,
                            embeddings::ReadCorpus(embeddings::EmbeddedText(),
                                                   embeddings::kMinCount));
  if (status.ok()) return 0;
  std::cerr << "embeddings_worker: " << status << "\n";
  return 1;
}
