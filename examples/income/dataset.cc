#include "examples/income/dataset.h"

#include <array>
#include <string>

#include "absl/numeric/bits.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "examples/common/sparse_training.h"

namespace penstock::income {
namespace {

enum class Kind {
  kWord,
  kEvery5,    // numbers, in bins of five
  kPowerOf2,  // amounts, by their binary magnitude
  kLeftOut,
};

struct Column {
  absl::string_view name;
  Kind kind;
};

// The columns of the data, and the way in which each becomes a feature.
// `fnlwgt`, the number of people that a row represents, is left out.
// `education-num` is left out, because `education` is equivalent.
constexpr std::array<Column, 14> kColumns = {{
    {"age", Kind::kEvery5},
    {"workclass", Kind::kWord},
    {"fnlwgt", Kind::kLeftOut},
    {"education", Kind::kWord},
    {"education-num", Kind::kLeftOut},
    {"marital-status", Kind::kWord},
    {"occupation", Kind::kWord},
    {"relationship", Kind::kWord},
    {"race", Kind::kWord},
    {"sex", Kind::kWord},
    {"capital-gain", Kind::kPowerOf2},
    {"capital-loss", Kind::kPowerOf2},
    {"hours-per-week", Kind::kEvery5},
    {"native-country", Kind::kWord},
}};

constexpr size_t kTestEvery = 4;

// Returns the feature's name for a value of a column. Returns "" for an omitted
// column or an invalid number.
std::string FeatureOf(const Column& column, absl::string_view value) {
  if (column.kind == Kind::kLeftOut) return "";
  if (column.kind == Kind::kWord) return absl::StrCat(column.name, "=", value);
  uint32_t number;
  if (!absl::SimpleAtoi(value, &number)) return "";
  const auto bin = column.kind == Kind::kEvery5
                       ? number / 5
                       : static_cast<uint32_t>(absl::bit_width(number));
  return absl::StrCat(column.name, "=", bin);
}

Example ExampleOf(const std::vector<absl::string_view>& fields) {
  std::vector<std::string> features;
  features.reserve(kColumns.size());
  for (size_t i = 0; i < kColumns.size(); ++i) {
    std::string feature =
        FeatureOf(kColumns[i], absl::StripAsciiWhitespace(fields[i]));
    if (!feature.empty()) features.push_back(std::move(feature));
  }
  Example example;
  example.features.reserve(1 + features.size() * (features.size() + 1) / 2);
  example.features.push_back(examples::IdOf("all"));
  for (size_t i = 0; i < features.size(); ++i) {
    example.features.push_back(examples::IdOf(features[i]));
    for (size_t j = 0; j < i; ++j) {
      example.features.push_back(
          examples::IdOf(absl::StrCat(features[j], "&", features[i])));
    }
  }
  return example;
}

}  // namespace

absl::StatusOr<Dataset> ReadIncome(absl::string_view csv) {
  Dataset dataset;
  size_t line_number = 0;
  size_t count = 0;
  for (absl::string_view line : absl::StrSplit(csv, '\n')) {
    ++line_number;
    if (line.empty() || line[0] == '|') continue;  // a comment
    std::vector<absl::string_view> fields = absl::StrSplit(line, ',');
    const absl::string_view label = absl::StripAsciiWhitespace(fields.back());
    if (fields.size() != kColumns.size() + 1 ||
        (label != ">50K." && label != "<=50K.")) {
      return absl::InvalidArgumentError(
          absl::StrCat("income: line ", line_number,
                       " is not 14 columns and '>50K.' or '<=50K.'"));
    }
    Example example = ExampleOf(fields);
    example.label = label == ">50K." ? 1.0F : 0.0F;
    auto& part = count++ % kTestEvery == 0 ? dataset.test : dataset.train;
    part.push_back(std::move(example));
  }
  return dataset;
}

}  // namespace penstock::income
