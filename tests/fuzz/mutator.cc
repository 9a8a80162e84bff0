#include "tests/fuzz/mutator.h"

namespace penstock {
namespace fuzz {
namespace {

// The values where counters and lengths overflow.
constexpr uint64_t kTurningPoints[] = {
    0,      1,      7,    8,     0x7f,       0x80,       0xff, 0x100,
    0x7fff, 0xffff, 1024, 65536, 0x7fffffff, 0xffffffff, ~0ull};

}  // namespace

std::string Mutator::Next() {
  std::string text = AnySeed();
  const size_t changes = 1 + Below(6);
  for (size_t i = 0; i < changes; ++i) Change(&text);
  return text;
}

std::string Mutator::SomeOf(const std::string& text) {
  const size_t begin = Below(text.size() + 1);
  return text.substr(begin, Below(text.size() - begin + 1));
}

void Mutator::Change(std::string* text) {
  const size_t at = Below(text->size() + 1);
  switch (Below(7)) {
    case 0:  // flips a bit
      if (at < text->size()) (*text)[at] ^= 1 << Below(8);
      break;
    case 1:  // changes a byte
      if (at < text->size()) (*text)[at] = static_cast<char>(random_());
      break;
    case 2:
      Overwrite(text);
      break;
    case 3:
      text->insert(at, 1 + Below(4), static_cast<char>(random_()));
      break;
    case 4:
      text->erase(at, 1 + Below(8));
      break;
    case 5:  // copies from another input
      text->insert(at, SomeOf(AnySeed()));
      break;
    case 6:  // truncates
      if (Below(4) == 0) text->resize(at);
      break;
  }
}

void Mutator::Overwrite(std::string* text) {
  constexpr size_t kPoints = sizeof(kTurningPoints) / sizeof(kTurningPoints[0]);
  uint64_t value = kTurningPoints[Below(kPoints)];
  const size_t size = size_t{1} << Below(4);
  if (text->size() < size) return;
  const size_t at = Below(text->size() - size + 1);
  for (size_t i = 0; i < size; ++i, value >>= 8) {
    (*text)[at + i] = static_cast<char>(value);
  }
}

}  // namespace fuzz
}  // namespace penstock
