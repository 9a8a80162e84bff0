#include "bench/tensors/local.h"

#include <cstring>
#include <utility>

#include "bench/tensors/sum.h"
#include "bench/tensors/system.h"

namespace penstock::bench {
namespace {

double MicrosecondsSince(int64_t begin_ns) {
  return (MonotonicNs() - begin_ns) / 1e3;
}

uint64_t SumOfAll(const tensor::Bundle& bundle) {
  uint64_t sum = 0;
  for (const tensor::NamedTensor& named : bundle.tensors) {
    sum += SumOf(named.tensor.bytes());
  }
  return sum;
}

}  // namespace

absl::StatusOr<Copier> Copier::Make(const tensor::Bundle& variables) {
  Copier copier;
  for (const tensor::NamedTensor& named : variables.tensors) {
    auto copy = named.tensor.Copy(tensor::HeapAllocator());
    if (!copy.ok()) return copy.status();
    copier.copies_.tensors.push_back({named.name, *std::move(copy)});
  }
  return copier;
}

uint64_t Copier::Run(const tensor::Bundle& variables, int64_t begin_ns,
                     Step* step) {
  for (size_t i = 0; i < variables.tensors.size(); ++i) {
    const absl::string_view from = variables.tensors[i].tensor.bytes();
    memcpy(copies_.tensors[i].tensor.buffer()->mutable_data(), from.data(),
           from.size());
  }
  step->handed_us = MicrosecondsSince(begin_ns);
  const uint64_t sum = SumOfAll(copies_);
  step->read_us = step->call_us = MicrosecondsSince(begin_ns);
  return sum;
}

uint64_t ReadInPlace(const tensor::Bundle& variables, int64_t begin_ns,
                     Step* step) {
  const uint64_t sum = SumOfAll(variables);
  step->read_us = step->call_us = MicrosecondsSince(begin_ns);
  return sum;
}

}  // namespace penstock::bench
