// demo: trains word vectors in several processes, and prints neighbouring
// words. See README.md.

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "examples/embeddings/corpus.h"
#include "examples/embeddings/flags.h"
#include "examples/embeddings/skip_gram.h"
#include "examples/embeddings/training.h"

namespace penstock::embeddings {
namespace {

constexpr size_t kNeighbours = 6;

void PrintNeighbours(const Vocabulary& vocabulary, const ConstRows& vectors,
                     const std::string& word) {
  const auto nearest = Nearest(vocabulary, vectors, word, kNeighbours);
  printf("%-10s", word.c_str());
  if (nearest.empty()) {
    printf(" none: it is not %llu times in the novels",
           static_cast<unsigned long long>(kMinCount));
  }
  for (const Neighbour& neighbour : nearest) {
    printf(" %s %.2f ", neighbour.word.c_str(), neighbour.cosine);
  }
  printf("\n");
}

absl::Status Run(const TrainingOptions& options,
                 const std::vector<std::string>& words) {
  const absl::Time start = absl::Now();
  const Corpus corpus = ReadCorpus(EmbeddedText(), kMinCount);
  const Vocabulary& vocabulary = corpus.vocabulary;
  printf("%zu words of text, %zu different ones\n", corpus.words.size(),
         vocabulary.words.size());
  printf("parameter servers: %u, workers: %u, staleness: %s\n", options.servers,
         options.workers, options.staleness.c_str());
  fflush(stdout);
  auto trained = Train(options, vocabulary, [](unsigned step, double loss) {
    if (step % 100 == 0) printf("step %4u: loss %.4f\n", step, loss);
    fflush(stdout);
  });
  if (!trained.ok()) return trained.status();
  auto values = trained->flat<float>();
  if (!values.ok()) return values.status();
  const ConstRows vectors(values->data(), trained->shape()[0],
                          trained->shape()[1]);
  printf("\nnearest by cosine:\n");
  for (const std::string& word : words) {
    PrintNeighbours(vocabulary, vectors, absl::AsciiStrToLower(word));
  }
  printf("%.1f s in all\n", absl::ToDoubleSeconds(absl::Now() - start));
  return absl::OkStatus();
}

}  // namespace
}  // namespace penstock::embeddings

int main(int argc, char** argv) {
  // Silence the log, whose lines for each connection do not concern the
  // training.
  setenv("PENSTOCK_LOG", "warning", /*overwrite=*/0);
  penstock::embeddings::TrainingOptions options;
  std::vector<std::string> words = {"mother", "monday", "three",
                                    "walked", "sorry",  "handsome",
                                    "letter", "london", "captain"};
  CLI::App app("Word vectors in sparse tables, trained in several processes");
  penstock::examples::AddServers(&options.servers, &app);
  app.add_option("words", words, "whose neighbours are printed");
  penstock::embeddings::AddFlags(&options, &app);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = penstock::embeddings::Run(options, words);
  if (status.ok()) return 0;
  std::cerr << "demo: " << status << "\n";
  return 1;
}
