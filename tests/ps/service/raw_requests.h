// Makes requests that a faulty or a hostile peer might send.

#ifndef PENSTOCK_TESTS_PS_SERVICE_RAW_REQUESTS_H_
#define PENSTOCK_TESTS_PS_SERVICE_RAW_REQUESTS_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "ps/model/model.h"
#include "ps/wire/ps.pb.h"

namespace penstock::ps {

// Returns a model with all kinds of tables, for a server with run 7.
Model ModelForRawRequests();

// Makes random requests. Protobuf, not the project's encoder, encodes them, and
// then some bytes are changed. The same seed gives the same requests.
class Requests {
 public:
  explicit Requests(uint64_t seed) : random_(seed) {}

  uint64_t Below(uint64_t bound) { return random_() % bound; }
  bool Chance(uint64_t percent) { return Below(100) < percent; }

  // Returns bytes for a method of the service, by its name.
  std::string Next(const std::string& method);

 private:
  template <typename T>
  T AnyOf(std::initializer_list<T> all) {
    return *(all.begin() + Below(all.size()));
  }

  std::string Noise(size_t size);

  void Change(std::string* bytes);

  uint64_t Number() { return Chance(60) ? Below(4) : random_() >> Below(64); }
  std::string Name();
  void Fill(v1::View* view);
  void Fill(v1::WorkerId* worker);
  void Fill(tensor::v1::Tensor* tensor, int dtype, std::vector<int64_t> shape);
  void AddTensor(v1::PushRequest* request);
  v1::PushRequest AnyPush();
  std::string Valid(const std::string& method);
  std::string ForCheckpoint(const std::string& method);

  std::mt19937_64 random_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SERVICE_RAW_REQUESTS_H_
