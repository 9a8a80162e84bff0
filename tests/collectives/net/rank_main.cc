// A program that is one rank of a group across hosts, for tests that kill it.
//
// usage: rank FABRIC [HOST [TIMEOUT]]
//
// With a HOST other than "", forms a HierarchicalGroup as a rank of this host.
// TIMEOUT limits each wait, for example to "300ms".
//
// Prints "address X". Then reads "RANK ADDRESS|ADDRESS|..." from its input and
// forms the group. Prints "ready" after a barrier, and runs random operations
// until an error. Prints the error as "error X" with the time since the last
// success, and starts over. Ends when its input ends.

#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "collectives/group.h"
#include "collectives/hierarchical/group.h"
#include "collectives/net/group.h"
#include "collectives/net/listener.h"

namespace penstock::collectives {
namespace {

void Print(const std::string& line) {
  std::cout << line << std::endl;  // flushes
}

// Calls the operation that `number` selects, the same one on all ranks.
absl::Status Call(uint64_t number, std::vector<float>* data, Group* group) {
  std::mt19937_64 random(number);
  const auto count = static_cast<int64_t>(1 + random() % data->size());
  const auto root = static_cast<int>(random() % group->ranks());
  switch (random() % 4) {
    case 0:
      return group->AllReduce(ReduceOp::kMax, tensor::DType::kF32, data->data(),
                              data->data(), count);
    case 1:
      return group->Broadcast(tensor::DType::kF32, data->data(), count, root);
    case 2:
      return group->Reduce(ReduceOp::kMax, tensor::DType::kF32, data->data(),
                           data->data(), count, root);
    default:
      return group->Barrier();
  }
}

absl::StatusOr<std::unique_ptr<Group>> Form(
    std::unique_ptr<Listener> listener,
    const std::vector<std::string>& addresses, int rank, bool is_hierarchical,
    absl::Duration timeout) {
  NetGroupOptions options;
  options.rank = rank;
  options.timeout = timeout;
  if (is_hierarchical) {
    return HierarchicalGroup::Form(std::move(listener), addresses, options);
  }
  return NetGroup::Form(std::move(listener), addresses, options);
}

void Run(std::unique_ptr<Listener> listener, const std::string& command,
         absl::Duration timeout) {
  const std::pair<std::string, std::string> words =
      absl::StrSplit(command, absl::MaxSplits(' ', 1));
  const std::vector<std::string> addresses = absl::StrSplit(words.second, '|');
  int rank = 0;
  (void)absl::SimpleAtoi(words.first, &rank);
  const bool is_hierarchical = !listener->options().neighbourhood.empty();
  auto group =
      Form(std::move(listener), addresses, rank, is_hierarchical, timeout);
  absl::Status status = group.status();
  if (status.ok()) status = (*group)->Barrier();
  if (status.ok()) Print("ready");
  // Destroyed before the group. By then, no part in flight may refer to the
  // data.
  std::vector<float> data(400'000);
  absl::Time last = absl::Now();
  for (uint64_t number = 0; status.ok(); ++number) {
    last = absl::Now();
    status = Call(number, &data, group->get());
  }
  Print(absl::StrCat("error ", status.message(), " | after ",
                     absl::FormatDuration(absl::Now() - last)));
}

int Main(const std::string& fabric, const std::string& host,
         absl::Duration timeout) {
  ListenerOptions options;
  options.neighbourhood = host;
  if (fabric == "tcp") options.settings.fabrics = {Fabric::kTcp};
  std::string command;
  while (true) {
    auto listener = Listener::Open(options);
    if (!listener.ok()) return 1;
    Print(absl::StrCat("address ", (*listener)->address()));
    if (!std::getline(std::cin, command)) return 0;
    Run(*std::move(listener), command, timeout);
  }
}

}  // namespace
}  // namespace penstock::collectives

int main(int argc, char** argv) {
  absl::Duration timeout = absl::Minutes(30);
  if (argc > 3 && !absl::ParseDuration(argv[3], &timeout)) return 1;
  return penstock::collectives::Main(argv[1], argc > 2 ? argv[2] : "", timeout);
}
