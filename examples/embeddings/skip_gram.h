// Computes the model: skip-gram with negative sampling.

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

// Vectors of words, one row for each word.
using Matrix =
    Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstRows = Eigen::Map<const Matrix>;
using Rows = Eigen::Map<Matrix>;

// Adds the gradients of all pairs to the rows of `center_gradients` and
// `other_gradients`. A pair with vectors c and o has the loss -log sigmoid(c .
// o) for label 1, and -log sigmoid(-c . o) for label 0. Rows are in the order
// of batch.centers and batch.others. Returns the mean loss.
double AddGradients(const Batch& batch, const ConstRows& centers,
                    const ConstRows& others, Rows center_gradients,
                    Rows other_gradients);

struct Neighbour {
  std::string word;
  float cosine;
};

// Returns the `count` words whose vectors have the smallest angles to that of
// `word`, the nearest first, without `word` itself. Returns none if `word` is
// not in the vocabulary. Vectors are rows in the order of the vocabulary.
std::vector<Neighbour> Nearest(const Vocabulary& vocabulary,
                               const ConstRows& vectors, absl::string_view word,
                               size_t count);

}  // namespace penstock::embeddings

#endif  // PENSTOCK_EXAMPLES_EMBEDDINGS_SKIP_GRAM_H_
