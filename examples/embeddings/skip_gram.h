// The model: skip-gram with negative sampling.

#ifndef PENSTOCK_EXAMPLES_EMBEDDINGS_SKIP_GRAM_H_
#define PENSTOCK_EXAMPLES_EMBEDDINGS_SKIP_GRAM_H_

#include <cstddef>
#include <eigen3/Eigen/Core>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "examples/embeddings/corpus.h"
#include "examples/embeddings/sampler.h"

namespace penstock::embeddings {

// A row for each word.
using Matrix =
    Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstRows = Eigen::Map<const Matrix>;
using Rows = Eigen::Map<Matrix>;

// Adds, for each pair with the vectors c and o, the gradient of its loss, which
// is -log sigmoid(c . o) for label 1 and -log sigmoid(-c . o) for label 0, to
// the rows of `center_gradients` and `other_gradients`. Rows are in the order
// of batch.centers and batch.others. Returns the mean loss of the pairs.
double AddGradients(const Batch& batch, const ConstRows& centers,
                    const ConstRows& others, Rows center_gradients,
                    Rows other_gradients);

struct Neighbour {
  std::string word;
  float cosine;
};

// Returns the `count` words whose vectors have the smallest angles with that of
// `word`, the nearest first, without itself; none for a word that is not in the
// vocabulary. Vectors are rows in the order of the vocabulary.
std::vector<Neighbour> Nearest(const Vocabulary& vocabulary,
                               const ConstRows& vectors, absl::string_view word,
                               size_t count);

}  // namespace penstock::embeddings

#endif  // PENSTOCK_EXAMPLES_EMBEDDINGS_SKIP_GRAM_H_
