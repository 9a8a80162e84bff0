#include "bench/ps/training/report.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "bench/rpc/statistics.h"

namespace penstock::bench {
namespace {

using Figure = double Figures::*;

std::vector<double> Samples(const Row& row, Figure figure) {
  std::vector<double> samples;
  samples.reserve(row.rounds.size());
  for (const Figures& round : row.rounds) samples.push_back(round.*figure);
  return samples;
}

// "12.3 (11.9-12.8)"; "-" for what a contender does not do.
std::string Quartiles(const std::vector<double>& samples) {
  const double median = Median(samples);
  if (median == 0) return "-";
  return absl::StrFormat("%.4g (%.4g-%.4g)", median, Percentile(samples, 25),
                         Percentile(samples, 75));
}

// Of each round.
std::vector<double> Ratios(const std::vector<double>& upper,
                           const std::vector<double>& lower) {
  std::vector<double> ratios;
  ratios.reserve(upper.size());
  for (size_t i = 0; i < std::min(upper.size(), lower.size()); ++i) {
    ratios.push_back(lower[i] == 0 ? 0 : upper[i] / lower[i]);
  }
  return ratios;
}

template <typename Cell>
void PrintLine(const std::string& label, Cell cell, std::ostream& out) {
  out << absl::StrFormat("  %-22s", label);
  for (const FigureName& each : kFigures) {
    out << absl::StrFormat("%26s", cell(each.figure));
  }
  out << "\n";
}

}  // namespace

void PrintTable(const std::string& workload, size_t ids,
                const std::vector<Row>& rows, std::ostream& out) {
  out << absl::StrFormat("%-24s", workload + ", ms");
  for (const FigureName& each : kFigures) {
    out << absl::StrFormat("%26s", each.name);
  }
  out << "\n";
  for (const Row& row : rows) {
    PrintLine(
        row.contender,
        [&](Figure figure) {
          std::vector<double> samples = Samples(row, figure);
          for (double& sample : samples) sample *= 1e3;
          return Quartiles(samples);
        },
        out);
  }
  for (const Row& row : rows) {
    if (ids == 0 || row.rounds.empty()) continue;
    PrintLine(
        "Mids/s, " + row.contender,
        [&](Figure figure) {
          std::vector<double> samples = Samples(row, figure);
          for (double& sample : samples) {
            sample = sample == 0 ? 0 : static_cast<double>(ids) / sample / 1e6;
          }
          return Quartiles(samples);
        },
        out);
  }
  for (size_t i = 1; i < rows.size(); ++i) {
    const bool is_limit = rows[i].contender == "plain";
    for (size_t other = 0; is_limit && other < i; ++other) {
      PrintLine(
          rows[other].contender + " / plain",
          [&](Figure figure) {
            return Quartiles(
                Ratios(Samples(rows[other], figure), Samples(rows[i], figure)));
          },
          out);
    }
    if (is_limit) continue;
    PrintLine(
        rows[0].contender + " / " + rows[i].contender,
        [&](Figure figure) {
          return Quartiles(
              Ratios(Samples(rows[0], figure), Samples(rows[i], figure)));
        },
        out);
  }
  out.flush();
}

nlohmann::json ToJson(const std::vector<Row>& rows) {
  nlohmann::json json = nlohmann::json::object();
  for (const Row& row : rows) {
    for (const FigureName& each : kFigures) {
      json[row.contender][std::string(each.name)] = Samples(row, each.figure);
    }
  }
  return json;
}

}  // namespace penstock::bench
