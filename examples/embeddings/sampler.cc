#include "examples/embeddings/sampler.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_map.h"

namespace penstock::embeddings {
namespace {

constexpr double kNegativePower = 0.75;

// Assigns an index to each word of a batch, in order of the first use.
class Places {
 public:
  explicit Places(std::vector<uint32_t>* words) : words_(*words) {}

  uint32_t Of(uint32_t word) {
    auto [found, is_new] = places_.try_emplace(word, words_.size());
    if (is_new) words_.push_back(word);
    return found->second;
  }

 private:
  std::vector<uint32_t>& words_;
  absl::flat_hash_map<uint32_t, uint32_t> places_;
};

std::vector<double> NegativeWeights(const Vocabulary& vocabulary) {
  std::vector<double> weights;
  weights.reserve(vocabulary.counts.size());
  for (uint64_t count : vocabulary.counts) {
    weights.push_back(std::pow(static_cast<double>(count), kNegativePower));
  }
  return weights;
}

}  // namespace

Sampler::Sampler(const Corpus* corpus, size_t from, size_t to,
                 const SamplerOptions& options)
    : corpus_(*corpus),
      from_(from),
      to_(to),
      options_(options),
      at_(from),
      random_(options.seed) {
  const std::vector<double> weights = NegativeWeights(corpus_.vocabulary);
  negative_ =
      std::discrete_distribution<uint32_t>(weights.begin(), weights.end());
  const auto total = static_cast<double>(corpus_.words.size());
  for (uint64_t count : corpus_.vocabulary.counts) {
    const double frequency = static_cast<double>(count) / total;
    kept_.push_back(std::sqrt(options_.subsample / frequency));
  }
}

uint32_t Sampler::NextWord() {
  std::uniform_real_distribution<double> uniform;
  while (true) {
    const uint32_t word = corpus_.words[at_];
    at_ = at_ + 1 == to_ ? from_ : at_ + 1;
    if (uniform(random_) < kept_[word]) return word;
  }
}

// Reads the next words of the text. The last words of a batch are the first
// words of the next batch. Thus each center has its neighbours on both sides.
void Sampler::FillText() {
  const size_t around = 2 * size_t{options_.window};
  if (text_.size() > around) text_.erase(text_.begin(), text_.end() - around);
  while (text_.size() < options_.centers + around) text_.push_back(NextWord());
}

Batch Sampler::Next() {
  FillText();
  Batch batch;
  Places centers(&batch.centers);
  Places others(&batch.others);
  std::uniform_int_distribution<unsigned> width(1, options_.window);
  for (size_t i = options_.window; i < options_.window + options_.centers;
       ++i) {
    const uint32_t center = centers.Of(text_[i]);
    const unsigned window = width(random_);
    for (size_t j = i - window; j <= i + window; ++j) {
      if (j == i) continue;
      batch.pairs.push_back({center, others.Of(text_[j]), 1});
      for (unsigned k = 0; k < options_.negatives; ++k) {
        const uint32_t drawn = negative_(random_);
        if (drawn == text_[j]) continue;
        batch.pairs.push_back({center, others.Of(drawn), 0});
      }
    }
  }
  return batch;
}

}  // namespace penstock::embeddings
