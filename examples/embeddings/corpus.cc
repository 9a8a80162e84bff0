#include "examples/embeddings/corpus.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "examples/common/sparse_training.h"

namespace penstock::embeddings {
namespace {

std::vector<std::string> WordsOf(absl::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (char c : text) {
    if (absl::ascii_isalpha(c)) {
      word.push_back(absl::ascii_tolower(c));
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

Vocabulary VocabularyOf(const std::vector<std::string>& words,
                        uint64_t min_count) {
  absl::flat_hash_map<std::string, uint64_t> counts;
  for (const std::string& word : words) ++counts[word];
  std::vector<std::pair<std::string, uint64_t>> order;
  for (const auto& entry : counts) {
    if (entry.second >= min_count) order.emplace_back(entry);
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  Vocabulary vocabulary;
  for (auto& [word, count] : order) {
    vocabulary.ids.push_back(examples::IdOf(word));
    vocabulary.counts.push_back(count);
    vocabulary.words.push_back(std::move(word));
  }
  return vocabulary;
}

}  // namespace

Corpus ReadCorpus(absl::string_view text, uint64_t min_count) {
  const std::vector<std::string> words = WordsOf(text);
  Corpus corpus;
  corpus.vocabulary = VocabularyOf(words, min_count);
  absl::flat_hash_map<absl::string_view, uint32_t> numbers;
  for (const std::string& word : corpus.vocabulary.words) {
    numbers.emplace(word, numbers.size());
  }
  for (const std::string& word : words) {
    auto found = numbers.find(word);
    if (found != numbers.end()) corpus.words.push_back(found->second);
  }
  return corpus;
}

}  // namespace penstock::embeddings
