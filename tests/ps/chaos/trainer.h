// The process of a worker, which trains until its input ends.

#ifndef PENSTOCK_TESTS_PS_CHAOS_TRAINER_H_
#define PENSTOCK_TESTS_PS_CHAOS_TRAINER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ps/client/training_connection.h"
#include "tests/ps/training/training.h"

namespace penstock::ps {

// Writes "0:1,-1:0" for a synchronous table with a backup worker and an
// asynchronous one.
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

// Trains, and attaches again after servers were restarted. Returns the exit
// code: 1 if the worker cannot go on.
int BeTrainer(const TrainerArguments& arguments);

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_CHAOS_TRAINER_H_
