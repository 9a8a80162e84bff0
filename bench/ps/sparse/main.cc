// Measures sparse tables, compared with std::unordered_map, see docs/method.md.
//
// Each contender is filled, measured and freed before the next one, because two
// of them would not fit into memory. The contenders alternate several times.
// Rates are based on the threads' CPU time, not on elapsed time: other programs
// take some of our cache, but do not add to our CPU time.

#include <malloc.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/random/zipf_distribution.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "ps/sparse/hash.h"
#include "ps/sparse/table.h"

namespace penstock::ps::sparse {
namespace {

constexpr size_t kDim = 64;
constexpr float kRate = 0.01f;

using Ids = std::vector<uint64_t>;
using Floats = std::vector<float>;

struct Flags {
  uint64_t rows = 10000000;
  size_t batch = 4096;
  double seconds = 1;
  int rounds = 2;
  int threads = 2;
  double zipf = 1.1;
};

void Step(const float* gradient, float* value, float* slots) {
  for (size_t k = 0; k < kDim; ++k) value[k] -= kRate * gradient[k];
}

class Contender {
 public:
  virtual ~Contender() = default;
  virtual void Lookup(const Ids& ids, Floats* out) = 0;
  virtual void Update(const Ids& ids, const Floats& gradients) = 0;
};

class SparseTable : public Contender {
 public:
  SparseTable(uint64_t rows, bool keeps_order) {
    Options options;
    options.name = "bench";
    options.dim = kDim;
    options.hash_seed = std::random_device()();
    // Sets a limit above the number of rows, so that no row is evicted.
    if (keeps_order) options.max_rows = rows * 2;
    table_ = *Table::Create(options);
  }
  void Lookup(const Ids& ids, Floats* out) override {
    if (!table_->Pull(ids, absl::UnixEpoch(), absl::MakeSpan(*out)).ok()) {
      std::abort();
    }
  }
  void Update(const Ids& ids, const Floats& gradients) override {
    const auto result = table_->Push(ids, gradients, absl::UnixEpoch(), Step);
    if (!result.ok() || result->updated != ids.size()) std::abort();
  }

 private:
  std::unique_ptr<Table> table_;
};

class StdMap : public Contender {
 public:
  void Lookup(const Ids& ids, Floats* out) override {
    float* to = out->data();
    for (const uint64_t id : ids) {
      const auto found = rows_.find(id);
      if (found != rows_.end()) {
        std::copy(found->second.begin(), found->second.end(), to);
      }
      to += kDim;
    }
  }
  void Update(const Ids& ids, const Floats& gradients) override {
    const float* gradient = gradients.data();
    for (const uint64_t id : ids) {
      Step(gradient, rows_[id].data(), nullptr);
      gradient += kDim;
    }
  }

 private:
  std::unordered_map<uint64_t, std::array<float, kDim>> rows_;
};

double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

double ResidentBytes() {
  size_t all = 0;
  size_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return static_cast<double>(resident) * sysconf(_SC_PAGESIZE);
}

struct Batches {
  std::vector<Ids> ids;
  Floats gradients;
};

// Draws batches of ids. Frequent ids are mixed over the table. There are a
// million ids, so that an id repeats only after the cache has evicted it.
Batches Draw(const Flags& flags, bool zipf) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<uint64_t> uniform(0, flags.rows - 1);
  absl::zipf_distribution<uint64_t> skewed(flags.rows - 1, flags.zipf);
  Batches batches;
  batches.ids.resize(std::max<size_t>((1 << 20) / flags.batch, 1));
  for (Ids& ids : batches.ids) {
    ids.resize(flags.batch);
    for (uint64_t& id : ids) {
      id = Mix(zipf ? skewed(random) : uniform(random));
    }
  }
  batches.gradients.resize(flags.batch * kDim);
  for (float& gradient : batches.gradients) gradient = random() % 8 - 3.5f;
  return batches;
}

// Returns the ids per second of CPU time. The CPU time is the sum of all
// threads.
double Rate(const Flags& flags, int threads, const Batches& batches,
            const std::function<void(size_t batch, Floats* out)>& work) {
  std::vector<double> rates(threads);
  std::vector<std::thread> running;
  for (int thread = 0; thread < threads; ++thread) {
    running.emplace_back([&, thread] {
      Floats out(flags.batch * kDim);
      size_t batch = batches.ids.size() * thread / threads;
      work(batch, &out);  // touches the pages of `out`
      const double begin = ThreadSeconds();
      size_t done = 0;
      double seconds = 0;
      while (seconds < flags.seconds) {
        work(batch++ % batches.ids.size(), &out);
        ++done;
        seconds = ThreadSeconds() - begin;
      }
      rates[thread] = done * flags.batch / seconds;
    });
  }
  for (std::thread& thread : running) thread.join();
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum / threads;
}

using Figures = std::map<std::string, std::vector<double>>;

double Fill(const Flags& flags, Contender* contender) {
  const Floats zeros(flags.batch * kDim);
  const double begin = ThreadSeconds();
  Ids ids;
  for (uint64_t rank = 0; rank < flags.rows; ++rank) {
    ids.push_back(Mix(rank));
    if (ids.size() < flags.batch && rank + 1 < flags.rows) continue;
    contender->Update(
        ids, ids.size() == flags.batch ? zeros : Floats(ids.size() * kDim));
    ids.clear();
  }
  return flags.rows / (ThreadSeconds() - begin);
}

void Measure(const Flags& flags, const std::string& name, int threads,
             const Batches& uniform, const Batches& zipf,
             std::unique_ptr<Contender> (*make)(uint64_t rows),
             Figures* figures) {
  const double before = ResidentBytes();
  auto contender = make(flags.rows);
  (*figures)[name + "|filled"].push_back(Fill(flags, contender.get()));
  (*figures)[name + "|overhead"].push_back(
      (ResidentBytes() - before) / flags.rows / (kDim * sizeof(float)) - 1);
  for (const int count : {1, threads}) {
    for (const auto& [distribution, batches] :
         {std::make_pair("uniform", &uniform), std::make_pair("zipf", &zipf)}) {
      const std::string key =
          absl::StrFormat("%s|%s, %d thread%s", name, distribution, count,
                          count == 1 ? "" : "s");
      (*figures)[key + "|lookup"].push_back(
          Rate(flags, count, *batches, [&](size_t batch, Floats* out) {
            contender->Lookup(batches->ids[batch], out);
          }));
      (*figures)[key + "|update"].push_back(
          Rate(flags, count, *batches, [&](size_t batch, Floats* out) {
            contender->Update(batches->ids[batch], batches->gradients);
          }));
    }
    if (threads == 1) break;
  }
  contender.reset();
  malloc_trim(0);
}

void Run(const Flags& flags) {
  const Batches uniform = Draw(flags, false);
  const Batches zipf = Draw(flags, true);
  Figures figures;
  for (int round = 0; round < flags.rounds; ++round) {
    Measure(
        flags, "table", flags.threads, uniform, zipf,
        [](uint64_t rows) -> std::unique_ptr<Contender> {
          return std::make_unique<SparseTable>(rows, false);
        },
        &figures);
    Measure(
        flags, "unordered_map", 1, uniform, zipf,
        [](uint64_t rows) -> std::unique_ptr<Contender> {
          return std::make_unique<StdMap>();
        },
        &figures);
    Measure(
        flags, "table in order of use", 1, uniform, zipf,
        [](uint64_t rows) -> std::unique_ptr<Contender> {
          return std::make_unique<SparseTable>(rows, true);
        },
        &figures);
  }
  std::printf("%d rows of %d floats, batches of %d, zipf %.2f; of %d rounds\n",
              static_cast<int>(flags.rows), static_cast<int>(kDim),
              static_cast<int>(flags.batch), flags.zipf, flags.rounds);
  for (const auto& [key, values] : figures) {
    const bool overhead = key.find("overhead") != std::string::npos;
    std::printf("%-60s", key.c_str());
    for (const double value : values) {
      if (overhead) {
        std::printf(" %6.1f %%", value * 100);
      } else {
        std::printf(" %6.2f M/s", value * 1e-6);
      }
    }
    std::printf("\n");
  }
}

}  // namespace
}  // namespace penstock::ps::sparse

int main(int argc, char** argv) {
  penstock::ps::sparse::Flags flags;
  CLI::App app("Sparse tables, compared with a std::unordered_map.");
  app.add_option("--rows", flags.rows)->check(CLI::Range(1, 100000000));
  app.add_option("--batch", flags.batch, "ids of a call")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--seconds", flags.seconds, "of each cell")
      ->check(CLI::Range(0.01, 60.0));
  app.add_option("--rounds", flags.rounds)->check(CLI::Range(1, 100));
  app.add_option("--threads", flags.threads, "beside one")
      ->check(CLI::Range(1, 256));
  app.add_option("--zipf", flags.zipf, "the exponent")
      ->check(CLI::Range(1.01, 10.0));
  CLI11_PARSE(app, argc, argv);
  penstock::ps::sparse::Run(flags);
}
