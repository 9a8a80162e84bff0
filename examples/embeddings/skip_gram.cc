#include "examples/embeddings/skip_gram.h"

#include <algorithm>
#include <cmath>

namespace penstock::embeddings {
namespace {

// Returns log(1 + exp(x)), without overflow.
float Softplus(float x) {
  return std::max(x, 0.0F) + std::log1p(std::exp(-std::abs(x)));
}

}  // namespace

double AddGradients(const Batch& batch, const ConstRows& centers,
                    const ConstRows& others, Rows center_gradients,
                    Rows other_gradients) {
  double loss = 0;
  for (const Batch::Pair& pair : batch.pairs) {
    const auto c = centers.row(pair.center);
    const auto o = others.row(pair.other);
    const float score = c.dot(o);
    loss += Softplus(score) - pair.label * score;
    const float slope = 1 / (1 + std::exp(-score)) - pair.label;
    center_gradients.row(pair.center) += slope * o;
    other_gradients.row(pair.other) += slope * c;
  }
  return loss / static_cast<double>(batch.pairs.size());
}

std::vector<Neighbour> Nearest(const Vocabulary& vocabulary,
                               const ConstRows& vectors, absl::string_view word,
                               size_t count) {
  const auto& words = vocabulary.words;
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) return {};
  const auto own = found - words.begin();
  const Eigen::VectorXf unit = vectors.row(own).normalized();
  std::vector<Neighbour> all;
  all.reserve(words.size());
  for (Eigen::Index i = 0; i < vectors.rows(); ++i) {
    if (i == own) continue;
    all.push_back({words[i], vectors.row(i).normalized().dot(unit)});
  }
  count = std::min(count, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<ptrdiff_t>(count),
                    all.end(), [](const Neighbour& a, const Neighbour& b) {
                      return a.cosine > b.cosine;
                    });
  all.resize(count);
  return all;
}

}  // namespace penstock::embeddings
