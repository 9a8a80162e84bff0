// The program of a worker's process, which trains until its input ends.

#ifndef PENSTOCK_TESTS_PS_CHAOS_TRAINER_H_
#define PENSTOCK_TESTS_PS_CHAOS_TRAINER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ps/client/training_connection.h"
#include "tests/ps/training/training.h"

namespace penstock::ps {

// Returns a text for the policies. "0:1,-1:0" is a synchronous table with one
// backup worker, and an asynchronous table.
std::string TextOf(const std::vector<Staleness>& policies);

struct TrainerArguments {
  uint32_t rank = 0;
  uint64_t first_push = 0;  // the number of its first push
  std::vector<Staleness> policies;
  std::string record;  // the path
  std::vector<std::string> servers;

  std::vector<std::string> ToStrings() const;
  static TrainerArguments From(const std::vector<std::string>& strings);
};

TrainingConnection::Channels ChannelsTo(
    const std::vector<std::string>& addresses);

// Trains until the input ends, and attaches again after servers were restarted.
// Returns the exit code: 1 if the worker cannot continue.
int BeTrainer(const TrainerArguments& arguments);

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_CHAOS_TRAINER_H_
