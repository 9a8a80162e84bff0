// A text as a sequence of word numbers.

#ifndef PENSTOCK_EXAMPLES_EMBEDDINGS_CORPUS_H_
#define PENSTOCK_EXAMPLES_EMBEDDINGS_CORPUS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace penstock::embeddings {

// The words that occur often enough, sorted by decreasing frequency and then
// alphabetically. A word's number is its index in this list.
struct Vocabulary {
  std::vector<std::string> words;
  std::vector<uint64_t> counts;
  std::vector<uint64_t> ids;  // ids of the words' rows: hashes of the words
};

struct Corpus {
  Vocabulary vocabulary;
  std::vector<uint32_t> words;  // the text, as word numbers
};

// Returns the text of all novels in data/.
absl::string_view EmbeddedText();

// Parses a text. Words are maximal sequences of letters, in lower case. Removes
// words that occur fewer than `min_count` times.
Corpus ReadCorpus(absl::string_view text, uint64_t min_count);

}  // namespace penstock::embeddings

#endif  // PENSTOCK_EXAMPLES_EMBEDDINGS_CORPUS_H_
