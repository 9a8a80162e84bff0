// Converts between tensors and numbers.

#ifndef PENSTOCK_TESTS_PS_COMPRESSION_TENSORS_H_
#define PENSTOCK_TESTS_PS_COMPRESSION_TENSORS_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ps/optim/elements.h"
#include "tensor_service/tensor.h"

namespace penstock::ps::compression {

template <typename T>
tensor::Tensor Of(tensor::Shape shape, const std::vector<T>& values) {
  return tensor::Tensor::Of<T>(std::move(shape), absl::MakeConstSpan(values))
      .value();
}

template <typename T>
tensor::Tensor VectorOf(const std::vector<T>& values) {
  return Of<T>({static_cast<int64_t>(values.size())}, values);
}

// Returns the same elements at an odd address, as in a received message.
inline tensor::Tensor Unaligned(const tensor::Tensor& from) {
  auto copy = std::make_shared<std::string>("x");
  copy->append(from.bytes().data(), from.byte_size());
  return tensor::Tensor::FromBuffer(
             from.dtype(), from.shape(),
             tensor::Buffer::Share(copy->data() + 1, from.byte_size(), copy))
      .value();
}

// Returns the elements of a floating-point tensor, one by one.
inline std::vector<double> NumbersOf(const tensor::Tensor& tensor) {
  std::vector<double> numbers(tensor.num_elements());
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = optim::ElementAt(tensor.dtype(), tensor.bytes().data(), i);
  }
  return numbers;
}

template <typename T>
std::vector<T> ElementsOf(const tensor::Tensor& tensor) {
  std::vector<T> elements(tensor.num_elements());
  if (!elements.empty()) {
    std::memcpy(elements.data(), tensor.bytes().data(), tensor.byte_size());
  }
  return elements;
}

// Returns normally distributed numbers.
inline std::vector<float> NormalFloats(size_t count, std::mt19937_64* random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(*random);
  return values;
}

}  // namespace penstock::ps::compression

#endif  // PENSTOCK_TESTS_PS_COMPRESSION_TENSORS_H_
