// A text as numbered words.

#ifndef PENSTOCK_EXAMPLES_EMBEDDINGS_CORPUS_H_
#define PENSTOCK_EXAMPLES_EMBEDDINGS_CORPUS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace penstock::embeddings {

// The words that occur often enough: the most frequent first, and of equally
// frequent ones the first by the alphabet. A word's number is its place here.
struct Vocabulary {
  std::vector<std::string> words;
  std::vector<uint64_t> counts;
  std::vector<uint64_t> ids;  // of their rows: hashes of the words
};

struct Corpus {
  Vocabulary vocabulary;
  std::vector<uint32_t> words;  // of the text, in its order, by number
};

// Returns the text of all novels in data/.
absl::string_view EmbeddedText();

// Reads a text. Its words are its runs of letters, in lower case. Those that
// occur less than `min_count` times are left out, as if they were not there.
Corpus ReadCorpus(absl::string_view text, uint64_t min_count);

}  // namespace penstock::embeddings

#endif  // PENSTOCK_EXAMPLES_EMBEDDINGS_CORPUS_H_
