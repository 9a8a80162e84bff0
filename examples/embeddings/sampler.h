// Draws what a step of the training computes on.

#ifndef PENSTOCK_EXAMPLES_EMBEDDINGS_SAMPLER_H_
#define PENSTOCK_EXAMPLES_EMBEDDINGS_SAMPLER_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "examples/embeddings/corpus.h"

namespace penstock::embeddings {

// Pairs of words. A word is a place in `centers` or in `others`, which have
// each word once.
struct Batch {
  struct Pair {
    uint32_t center;
    uint32_t other;
    float label;  // 1: `other` stood near `center`; 0: it was drawn at random
  };
  std::vector<uint32_t> centers;  // words by number
  std::vector<uint32_t> others;
  std::vector<Pair> pairs;
};

struct SamplerOptions {
  unsigned centers = 512;   // words of the text in a batch
  unsigned window = 4;      // words on either side, at most
  unsigned negatives = 5;   // drawn for each word nearby
  double subsample = 1e-3;  // of the text's words; see below
  unsigned seed = 1;
};

// Goes through a part of the text again and again. As T. Mikolov et al. have it
// ("Distributed Representations of Words and Phrases and their
// Compositionality", NIPS 2013):
//
// - A word of frequency f is passed over with probability 1 - sqrt(s / f), if
//   that is positive, where s is `subsample`.
// - The window of each center has 1 to `window` words on either side; which
//   number is drawn.
// - Negatives are drawn by their counts to the power of 3/4. One that is the
//   word nearby itself is left out.
//
// The same options give the same batches, with the same C++ library.
class Sampler {
 public:
  // Words [from, to) of the corpus, which outlives the sampler. There is at
  // least one.
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
  std::vector<double> kept_;    // by word: how probably it is not passed over
  size_t at_;                   // in the text
  std::vector<uint32_t> text_;  // those of one batch, and around
  std::mt19937 random_;
  std::discrete_distribution<uint32_t> negative_;
};

}  // namespace penstock::embeddings

#endif  // PENSTOCK_EXAMPLES_EMBEDDINGS_SAMPLER_H_
