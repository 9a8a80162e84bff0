// Forms: the syntax of settings in the environment.
//
// A form is a small constant with a type, Value, and these functions:
//
//   Parse(text)     returns the value that `text` stands for, or nothing if
//                   the text is not allowed
//   Accepts(value)  returns true if a value that was set in code is allowed
//   ToText(value)   returns the text that Parse() would read
//   Allowed()       describes the allowed values, to follow the word "use"

#ifndef PENSTOCK_TRANSPORT_SETTINGS_FORM_H_
#define PENSTOCK_TRANSPORT_SETTINGS_FORM_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "transport/base/join_words.h"

namespace penstock {

template <typename T>
struct Word {
  absl::string_view text;
  T value;
};

// A form for one word of a list. Each word is the name of a value of the enum
// `T`.
template <typename T>
class Words {
 public:
  using Value = T;

  template <size_t N>
  constexpr explicit Words(const Word<T> (&words)[N]) : words_(words) {}

  absl::optional<T> Parse(absl::string_view text) const {
    for (const Word<T>& word : words_) {
      if (word.text == text) return word.value;
    }
    return absl::nullopt;
  }
  bool Accepts(T value) const { return Find(value) != nullptr; }
  std::string ToText(T value) const {
    const Word<T>* word = Find(value);
    return word == nullptr ? "unknown" : std::string(word->text);
  }
  std::string Allowed() const { return base::JoinWords(Texts(), "or"); }
  std::vector<absl::string_view> Texts() const {
    std::vector<absl::string_view> texts;
    for (const Word<T>& word : words_) texts.push_back(word.text);
    return texts;
  }

 private:
  const Word<T>* Find(T value) const {
    for (const Word<T>& word : words_) {
      if (word.value == value) return &word;
    }
    return nullptr;
  }

  absl::Span<const Word<T>> words_;
};

// Several words, best first, separated by commas without blanks.
template <typename T>
class ListOfWords {
 public:
  using Value = std::vector<T>;

  constexpr explicit ListOfWords(Words<T> words) : words_(words) {}

  absl::optional<Value> Parse(absl::string_view text) const {
    Value values;
    for (absl::string_view each : absl::StrSplit(text, ',')) {
      const absl::optional<T> value = words_.Parse(each);
      if (!value.has_value()) return absl::nullopt;
      values.push_back(*value);
    }
    return values;
  }
  bool Accepts(const Value& values) const {
    return std::all_of(values.begin(), values.end(),
                       [this](T value) { return words_.Accepts(value); });
  }
  std::string ToText(const Value& values) const {
    return absl::StrJoin(values, ",", [this](std::string* out, T value) {
      out->append(words_.ToText(value));
    });
  }
  std::string Allowed() const {
    const std::vector<absl::string_view> texts = words_.Texts();
    return absl::StrCat("a list of ", base::JoinWords(texts, "and"),
                        ", best first: \"", absl::StrJoin(texts, ","), "\"");
  }

 private:
  Words<T> words_;
};

// A number from `min` to `max`. The number `special` has a meaning of its own,
// and is also allowed.
struct Number {
  using Value = int;

  absl::optional<int> Parse(absl::string_view text) const;
  bool Accepts(int value) const;
  std::string ToText(int value) const;
  std::string Allowed() const;

  int min;
  int max;
  int special = 0;
  const char* special_means = nullptr;  // null: there is no special number
};

// An absolute path. In code it may also be empty, for "none".
struct Directory {
  using Value = std::string;

  absl::optional<std::string> Parse(absl::string_view text) const;
  bool Accepts(const std::string& path) const;
  std::string ToText(const std::string& path) const { return path; }
  std::string Allowed() const;

  size_t max_bytes;
};

// The absolute path of a file.
struct File {
  using Value = std::string;

  absl::optional<std::string> Parse(absl::string_view text) const;
  std::string ToText(const std::string& path) const { return path; }
  std::string Allowed() const { return "the absolute path of a file"; }
};

// An HttpAddress, as text.
struct HttpAddressText {
  using Value = std::string;

  absl::optional<std::string> Parse(absl::string_view text) const;
  std::string ToText(const std::string& address) const { return address; }
  std::string Allowed() const {
    return "a port, with a host before it or without: \"9464\", "
           "\"0.0.0.0:9464\"";
  }
};

// A VerbsDevice, as text. In code it may also be empty, for "any".
struct DeviceText {
  using Value = std::string;

  absl::optional<std::string> Parse(absl::string_view text) const;
  bool Accepts(const std::string& device) const;
  std::string ToText(const std::string& device) const { return device; }
  std::string Allowed() const;
};

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SETTINGS_FORM_H_
