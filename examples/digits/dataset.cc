#include "examples/digits/dataset.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace penstock::digits {
namespace {

constexpr float kBrightest = 16;

absl::Status ParseLine(absl::string_view line, size_t row, Images* images) {
  size_t column = 0;
  for (absl::string_view field : absl::StrSplit(line, ',')) {
    int value;
    int limit = column == kPixels ? kClasses - 1 : static_cast<int>(kBrightest);
    if (column > kPixels || !absl::SimpleAtoi(field, &value) || value < 0 ||
        value > limit) {
      break;
    }
    if (column == kPixels) {
      images->labels.push_back(value);
    } else {
      images->pixels(row, column) = static_cast<float>(value) / kBrightest;
    }
    ++column;
  }
  if (column == kPixels + 1 && images->labels.size() == row + 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("digits: line ", row + 1, " is not 64 pixels and a digit"));
}

Images Select(const Images& all, const std::vector<size_t>& order, size_t from,
              size_t to) {
  Images chosen;
  chosen.pixels.resize(to - from, kPixels);
  for (size_t i = from; i < to; ++i) {
    chosen.pixels.row(i - from) = all.pixels.row(order[i]);
    chosen.labels.push_back(all.labels[order[i]]);
  }
  return chosen;
}

// The seed of the split into training, validation and test digits, the same for
// all runs. Otherwise a parameter chosen on the validation digits of one run
// would depend on test digits of another run.
constexpr uint32_t kSplitSeed = 1;

// Shuffles by Fisher and Yates. std::shuffle may differ between libraries.
void Shuffle(uint32_t seed, size_t count, std::vector<size_t>* order) {
  std::mt19937 random(seed);
  for (size_t i = count; i > 1; --i) {
    std::swap((*order)[i - 1], (*order)[random() % i]);
  }
}

}  // namespace

absl::StatusOr<Dataset> LoadDigits(absl::string_view csv, uint32_t seed) {
  std::vector<absl::string_view> lines =
      absl::StrSplit(csv, '\n', absl::SkipEmpty());
  Images all;
  all.pixels.resize(lines.size(), kPixels);
  for (size_t row = 0; row < lines.size(); ++row) {
    absl::Status status = ParseLine(lines[row], row, &all);
    if (!status.ok()) return status;
  }
  std::vector<size_t> order(lines.size());
  std::iota(order.begin(), order.end(), 0);
  Shuffle(kSplitSeed, order.size(), &order);
  size_t train = lines.size() * 3 / 5;
  size_t seen = lines.size() * 4 / 5;
  Shuffle(seed, train, &order);
  return Dataset{Select(all, order, 0, train), Select(all, order, train, seen),
                 Select(all, order, seen, lines.size())};
}

Images BatchOf(const Images& train, uint64_t step, uint32_t rank,
               uint32_t workers, size_t batch) {
  Images part;
  part.pixels.resize(batch, kPixels);
  uint64_t first = (step * workers + rank) * batch;
  for (size_t i = 0; i < batch; ++i) {
    size_t row = (first + i) % train.labels.size();
    part.pixels.row(i) = train.pixels.row(row);
    part.labels.push_back(train.labels[row]);
  }
  return part;
}

}  // namespace penstock::digits
