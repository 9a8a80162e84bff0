// Trains a value with gradients from standard input, for Python tests that know
// the expected result.
//
//  usage: apply_steps KEY=VALUE...
//
//  The keys are fields of OptimizerConfig and Schedule, "rule", "kind", "dtype"
// (f32 or f64), "count" and "steps". Reads `count` elements of the value, and
// of the gradient of each step. Writes the value and then each slot, before the
// first step and after each step.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "ps/optim/optimizer.h"

namespace penstock::ps::optim {
namespace {

[[noreturn]] void Fail(absl::string_view why) {
  std::cerr << "apply_steps: " << why << "\n";
  std::exit(2);
}

using Arguments = std::map<std::string, std::string>;

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    arguments.insert(std::pair<std::string, std::string>(
        absl::StrSplit(argv[i], absl::MaxSplits('=', 1))));
  }
  return arguments;
}

double Number(const std::string& text) {
  double number;
  if (!absl::SimpleAtod(text, &number)) Fail("no number: " + text);
  return number;
}

Schedule::Kind KindNamed(const std::string& name) {
  for (Schedule::Kind kind : {Schedule::Kind::kConstant, Schedule::Kind::kStep,
                              Schedule::Kind::kCosine}) {
    if (Name(kind) == name) return kind;
  }
  Fail("no schedule: " + name);
}

// Returns the configuration in `arguments`, and removes its keys.
OptimizerConfig ConfigFrom(Arguments* arguments) {
  OptimizerConfig config;
  const std::map<std::string, double*> numbers = {
      {"learning_rate", &config.schedule.learning_rate},
      {"factor", &config.schedule.factor},
      {"final_rate", &config.schedule.final_rate},
      {"weight_decay", &config.weight_decay},
      {"clip_value", &config.clip_value},
      {"momentum", &config.momentum},
      {"decay", &config.decay},
      {"beta1", &config.beta1},
      {"beta2", &config.beta2},
      {"epsilon", &config.epsilon},
      {"ftrl_beta", &config.ftrl_beta},
      {"lambda1", &config.lambda1},
      {"lambda2", &config.lambda2},
      {"initial_accumulator", &config.initial_accumulator},
  };
  const std::map<std::string, uint64_t*> counts = {
      {"warm_up_steps", &config.schedule.warm_up_steps},
      {"every", &config.schedule.every},
  };
  for (const auto& [key, value] : Arguments(std::move(*arguments))) {
    if (key == "rule") {
      absl::StatusOr<Rule> rule = RuleNamed(value);
      if (!rule.ok()) Fail(rule.status().message());
      config.rule = *rule;
    } else if (key == "kind") {
      config.schedule.kind = KindNamed(value);
    } else if (auto at = numbers.find(key); at != numbers.end()) {
      *at->second = Number(value);
    } else if (auto whole = counts.find(key); whole != counts.end()) {
      *whole->second = static_cast<uint64_t>(Number(value));
    } else {
      Fail("no field: " + key);
    }
  }
  return config;
}

template <typename T>
void Read(std::vector<T>* into) {
  if (std::fread(into->data(), sizeof(T), into->size(), stdin) !=
      into->size()) {
    Fail("standard input ends early");
  }
}

template <typename T>
void Write(const std::vector<T>& value,
           const std::vector<std::vector<T>>& slots) {
  std::fwrite(value.data(), sizeof(T), value.size(), stdout);
  for (const auto& slot : slots) {
    std::fwrite(slot.data(), sizeof(T), slot.size(), stdout);
  }
}

template <typename T>
void Train(const Optimizer& optimizer, size_t count, uint64_t steps) {
  std::vector<T> value(count), gradient(count);
  Read(&value);
  std::vector<std::vector<T>> slots;
  for (const Slot& slot : optimizer.slots()) {
    slots.emplace_back(count, static_cast<T>(slot.initial));
  }
  T* data[kMostSlots] = {};
  for (size_t k = 0; k < slots.size(); ++k) data[k] = slots[k].data();
  Write(value, slots);
  for (uint64_t step = 1; step <= steps; ++step) {
    Read(&gradient);
    optimizer.Apply(optimizer.ScalarsOf(step), gradient.data(), value.data(),
                    value.data(), data, count);
    Write(value, slots);
  }
}

int Main(int argc, char** argv) {
  Arguments arguments = Parse(argc, argv);
  const bool wide = arguments["dtype"] == "f64";
  const auto count = static_cast<size_t>(Number(arguments["count"]));
  const auto steps = static_cast<uint64_t>(Number(arguments["steps"]));
  for (const char* own : {"dtype", "count", "steps"}) arguments.erase(own);
  const auto optimizer = Optimizer::Create(ConfigFrom(&arguments));
  if (!optimizer.ok()) Fail(optimizer.status().message());
  wide ? Train<double>(**optimizer, count, steps)
       : Train<float>(**optimizer, count, steps);
  return 0;
}

}  // namespace
}  // namespace penstock::ps::optim

int main(int argc, char** argv) {
  return penstock::ps::optim::Main(argc, argv);
}
