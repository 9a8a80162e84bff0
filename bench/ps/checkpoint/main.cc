// Measures writing and reading checkpoints, alternating with plain files of the
// same bytes.
//
// A plain file is written from the same memory, by write() of 1 MiB at a time
// and fsync(). The file is read by read() of 1 MiB at a time, into the memory
// to which a checkpoint is restored. "cold" means that the pages were dropped
// from the cache before. Each figure is the median of the rounds, in MB (10^6
// bytes of values, slots and rows) per second.

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ps/checkpoint/posix_files.h"
#include "ps/checkpoint/repository.h"
#include "ps/checkpoint/restore.h"
#include "ps/checkpoint/shard_writer.h"
#include "ps/checkpoint/verify.h"

namespace penstock::ps::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPiece = 1 << 20;
constexpr int64_t kColumns = 64;

[[noreturn]] void Fail(absl::string_view what) {
  std::fprintf(stderr, "checkpoint: %.*s\n", static_cast<int>(what.size()),
               what.data());
  std::exit(1);
}

void Require(const absl::Status& status) {
  if (!status.ok()) Fail(status.ToString());
}

// The table whose state is written: an Adam table of `bytes` bytes with two
// slots, or a sparse table whose rows have one slot. Contains no zero bytes,
// because a disk might not store them.
class State {
 public:
  State(uint64_t bytes, bool sparse) : sparse_(sparse) {
    TableDefinition table;
    table.name = "table";
    const size_t streams = sparse ? 2 : 3;
    for (size_t i = 1; i < streams; ++i) {
      table.slots.push_back({absl::StrCat("slot", i), tensor::DType::kF32});
    }
    rows_ = bytes / (streams * kColumns * sizeof(float));
    table.kind = sparse ? TableKind::kSparse : TableKind::kDense;
    table.shape = {kColumns};
    if (!sparse) table.shape.insert(table.shape.begin(), rows_);
    model_.tables.push_back(table);
    memory_.resize(rows_ * streams * kColumns * sizeof(float));
    uint64_t number = 1;
    for (size_t at = 0; at + 8 <= memory_.size(); at += 8) {
      number = number * 6364136223846793005u + 1442695040888963407u;
      memcpy(&memory_[at], &number, 8);
    }
    restored_.assign(memory_.size(), '\0');
  }

  const Model& model() const { return model_; }
  const std::string& memory() const { return memory_; }
  std::string* restored() { return &restored_; }
  bool sparse() const { return sparse_; }
  uint64_t rows() const { return rows_; }
  size_t row_bytes() const { return memory_.size() / rows_; }

 private:
  const bool sparse_;
  uint64_t rows_ = 0;
  Model model_;
  std::string memory_;
  std::string restored_;
};

class Reader : public Sink {
 public:
  explicit Reader(State* state) : state_(state) {}
  absl::Status TakeDense(const DenseElements& elements) override {
    const size_t stream_bytes = state_->restored()->size() / 3;
    memcpy(&(*state_->restored())[elements.stream * stream_bytes +
                                  elements.first * sizeof(float)],
           elements.bytes.data(), elements.bytes.size());
    return absl::OkStatus();
  }
  absl::Status TakeSparseStep(size_t, uint64_t) override { return {}; }
  absl::Status TakeRow(size_t, const SparseRow& row) override {
    memcpy(&(*state_->restored())[row.id * row.bytes.size()], row.bytes.data(),
           row.bytes.size());
    return absl::OkStatus();
  }
  absl::Status DropRow(size_t, uint64_t) override { return {}; }

 private:
  State* const state_;
};

void WritePlain(const State& state, const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (fd < 0) Fail(path);
  absl::string_view rest = state.memory();
  while (!rest.empty()) {
    const ssize_t written =
        write(fd, rest.data(), std::min(rest.size(), kPiece));
    if (written <= 0) Fail("write");
    rest.remove_prefix(static_cast<size_t>(written));
  }
  if (fsync(fd) != 0) Fail("fsync");
  close(fd);
}

void ReadPlain(State* state, const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY);
  if (fd < 0) Fail(path);
  std::string& to = *state->restored();
  for (size_t at = 0; at < to.size();) {
    const ssize_t got = read(fd, &to[at], std::min(to.size() - at, kPiece));
    if (got <= 0) Fail("read");
    at += static_cast<size_t>(got);
  }
  close(fd);
}

void WriteCheckpoint(const State& state, Files* files, Repository* repository,
                     uint64_t step) {
  NewCheckpoint checkpoint;
  checkpoint.step = step;
  checkpoint.model = state.model();
  checkpoint.shards = 1;
  const auto attempt = repository->Begin(checkpoint);
  Require(attempt.status());
  auto writer = ShardWriter::Create(files, &state.model(), *attempt, 0);
  Require(writer.status());
  const absl::string_view memory = state.memory();
  if (state.sparse()) {
    Require((*writer)->BeginSparse(0, 1));
    const size_t bytes = state.row_bytes();
    for (uint64_t id = 0; id < state.rows(); ++id) {
      Require((*writer)->AddRow({id, 1, 1, memory.substr(id * bytes, bytes)}));
    }
  } else {
    const size_t bytes = memory.size() / 3;
    Require((*writer)->AddDense(
        {0,
         0,
         state.rows(),
         1,
         {memory.substr(0, bytes), memory.substr(bytes, bytes),
          memory.substr(2 * bytes, bytes)}}));
  }
  const auto info = (*writer)->Finish({});
  Require(info.status());
  Require(repository->Commit({*info}, {}));
}

void ReadCheckpoint(State* state, Files* files, uint64_t step) {
  const auto chain = OpenChain(files, step);
  Require(chain.status());
  Wanted wanted;
  if (!state->sparse()) wanted.rows = {{0, 0, state->rows()}};
  wanted.holds = [](size_t, uint64_t) { return true; };
  Reader reader(state);
  Require(Restore(files, *chain, state->model(), wanted, &reader));
}

void DropPages(const std::string& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const int fd = open(entry.path().c_str(), O_RDONLY);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
  }
}

class Times {
 public:
  void Measure(const std::string& name, const std::function<void()>& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begin;
    seconds_[name].push_back(took.count());
  }

  void Print(uint64_t bytes) {
    for (auto& [name, all] : seconds_) {
      std::sort(all.begin(), all.end());
      const auto rate = [&](double seconds) {
        return static_cast<double>(bytes) / 1e6 / seconds;
      };
      std::printf("%-24s %6.0f MB/s   (%.0f to %.0f)\n", name.c_str(),
                  rate(all[all.size() / 2]), rate(all.back()),
                  rate(all.front()));
    }
  }

 private:
  std::map<std::string, std::vector<double>> seconds_;
};

void Run(const std::string& parent, uint64_t bytes, int rounds, bool sparse) {
  std::string root = parent + "/penstock-checkpoint-XXXXXX";
  if (mkdtemp(&root[0]) == nullptr) Fail(root);
  State state(bytes, sparse);
  auto files = OpenFolder(root);
  Require(files.status());
  const std::string plain = root + "/plain";
  Times times;
  for (int round = 0; round < rounds; ++round) {
    const auto step = static_cast<uint64_t>(round);
    auto repository = Repository::Open(files->get());
    Require(repository.status());
    const auto write_plain = [&] {
      times.Measure("write, plain", [&] { WritePlain(state, plain); });
    };
    // The order alternates between rounds.
    if (round % 2 == 0) write_plain();
    times.Measure("write, checkpoint", [&] {
      WriteCheckpoint(state, files->get(), repository->get(), step);
    });
    if (round % 2 == 1) write_plain();
    for (const std::string& kind : {std::string("cold"), std::string("warm")}) {
      if (kind == "cold") DropPages(root);
      const auto read_plain = [&] {
        times.Measure("read " + kind + ", plain",
                      [&] { ReadPlain(&state, plain); });
      };
      if (round % 2 == 0) read_plain();
      state.restored()->assign(state.memory().size(), '\0');
      times.Measure("read " + kind + ", checkpoint",
                    [&] { ReadCheckpoint(&state, files->get(), step); });
      if (*state.restored() != state.memory()) Fail("other bytes came back");
      if (round % 2 == 1) read_plain();
    }
    fs::remove(plain);
    fs::remove_all(absl::StrCat(root, "/step-000000000", step));
  }
  fs::remove_all(root);
  times.Print(state.memory().size());
}

}  // namespace
}  // namespace penstock::ps::checkpoint

int main(int argc, char** argv) {
  CLI::App app("Writes and reads checkpoints, compared with plain files.");
  std::string folder = ".";
  uint64_t megabytes = 1000;
  int rounds = 5;
  bool sparse = false;
  app.add_option("--folder", folder, "where")->check(CLI::ExistingDirectory);
  app.add_option("--megabytes", megabytes)->check(CLI::Range(1, 100000));
  app.add_option("--rounds", rounds)->check(CLI::Range(1, 9));
  app.add_flag("--sparse", sparse, "rows of 64 floats and a slot");
  CLI11_PARSE(app, argc, argv);
  penstock::ps::checkpoint::Run(folder, megabytes * 1'000'000, rounds, sparse);
  return 0;
}
