// Draws the training batches of words from a text.

#ifndef PENSTOCK_EXAMPLES_EMBEDDINGS_SAMPLER_H_
#define PENSTOCK_EXAMPLES_EMBEDDINGS_SAMPLER_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "examples/embeddings/corpus.h"

namespace penstock::embeddings {

// Pairs of words. A word is an index into `centers` or `others`, which contain
// each word once.
struct Batch {
  struct Pair {
    uint32_t center;
    uint32_t other;
    float label;  // 1: `other` is near `center`; 0: drawn randomly
  };
  std::vector<uint32_t> centers;  // words by number
  std::vector<uint32_t> others;
  std::vector<Pair> pairs;
};

struct SamplerOptions {
  unsigned centers = 512;   // words of the text in a batch
  unsigned window = 4;      // maximal number of words on either side
  unsigned negatives = 5;   // drawn for each nearby word
  double subsample = 1e-3;  // threshold of frequent words; see below
  unsigned seed = 1;
};

// A source of batches, which iterates over a part of the text, repeatedly.
// Samples as in T. Mikolov et al., "Distributed Representations of Words and
// Phrases and their Compositionality", NIPS 2013:
//
// - A word of frequency f is skipped with probability 1 - sqrt(s / f), if
//   positive, where s is `subsample`.
// - The window of each center has a random number of words on either side, from
//   1 to `window`.
// - Negatives are drawn by their counts to the power of 3/4. A negative that
//   equals the nearby word is omitted.
//
// The same options give the same batches, with the same C++ library.
class Sampler {
 public:
  // Makes a sampler of the words [from, to) of the corpus, which must outlive
  // the sampler. The range must not be empty.
  Sampler(const Corpus* corpus, size_t from, size_t to,
          const SamplerOptions& options);

  Batch Next();

 private:
  uint32_t NextWord();
  void FillText();

  const Corpus& corpus_;
  const size_t from_;
  const size_t to_;
  const SamplerOptions options_;
  // by word: the probability that the word is not skipped
  std::vector<double> kept_;
  size_t at_;                   // the position in the text
  std::vector<uint32_t> text_;  // the words of one batch, and around it
  std::mt19937 random_;
  std::discrete_distribution<uint32_t> negative_;
};

}  // namespace penstock::embeddings

#endif  // PENSTOCK_EXAMPLES_EMBEDDINGS_SAMPLER_H_
