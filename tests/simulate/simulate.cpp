// Predictions of training on many ranks: times of exchanges by their formulas, schedules beside a simulation in small steps of
// time, and what is read out of recordings.
#include "simulate/predict.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "support/error.h"
#include "support/files.h"

namespace cairn::simulate {
namespace {

Network network(double latency, double bandwidth, const char* topology = "auto") {
  Network made;
  made.between = made.inside = {latency, bandwidth};
  made.topology = topology;
  made.reduction = 1e12;
  return made;
}

TEST(Simulate, AnExchangeTakesWhatItsFormulaSays) {
  const double bytes = 8e6, latency = 1e-5, bandwidth = 1e9, adds = 1e12;
  EXPECT_NEAR(all_reduce(bytes, 4, network(latency, bandwidth, "ring")).seconds,
              6 * latency + 2 * 0.75 * bytes / bandwidth + 0.75 * bytes / adds, 1e-12);
  EXPECT_NEAR(all_reduce(bytes, 8, network(latency, bandwidth, "tree")).seconds,
              2 * 3 * latency + 2 * 0.875 * bytes / bandwidth + 0.875 * bytes / adds, 1e-12);
  EXPECT_NEAR(all_reduce(bytes, 3, network(latency, bandwidth, "direct")).seconds,
              latency + 2 * (bytes / bandwidth + bytes / adds), 1e-12);
  EXPECT_EQ(all_reduce(bytes, 1, network(latency, bandwidth)).seconds, 0);
}

TEST(Simulate, TheFastestAlgorithmIsTakenForEachSize) {
  EXPECT_EQ(all_reduce(8, 16, network(1e-5, 1e9)).algorithm, "direct");
  EXPECT_EQ(all_reduce(1e6, 4096, network(1e-5, 1e9)).algorithm, "tree");
  for (const char* each : {"direct", "tree", "ring"})
    for (double bytes : {1e2, 1e5, 1e8})
      for (int ranks : {2, 3, 8, 100}) {
        EXPECT_LE(all_reduce(bytes, ranks, network(2e-6, 1e10)).seconds,
                  all_reduce(bytes, ranks, network(2e-6, 1e10, each)).seconds * (1 + 1e-12));
      }
}

TEST(Simulate, RanksOfAHostExchangeOverItsOwnLinkFirst) {
  Network slow = network(1e-5, 1e9);
  slow.inside = {1e-6, 1e11};
  slow.ranks_per_host = 8;
  const Exchange by_hosts = all_reduce(1e8, 64, slow);
  EXPECT_EQ(by_hosts.algorithm, "tree by hosts");
  Network apart = network(1e-5, 1e9);
  apart.between.bandwidth /= 8;  // as if eight ranks shared the link of a host
  EXPECT_LT(by_hosts.seconds, all_reduce(1e8, 64, apart).seconds);
  EXPECT_LT(all_reduce(1e8, 8, slow).seconds, all_reduce(1e8, 8, network(1e-5, 1e9)).seconds);
}

Workload workload(std::vector<Gradient> gradients, double seconds) {
  Workload made;
  made.name = "net", made.seconds = seconds, made.steps = 10, made.gradients = std::move(gradients);
  return made;
}

TEST(Simulate, WithoutCostOfExchangeAllRanksAreUsed) {
  const Prediction made = predict(workload({{"a", 1e6, 0.5}, {"b", 1e6, 0.9}}, 1), 4096, network(0, 1e30));
  EXPECT_NEAR(made.seconds, 1, 1e-5);
  EXPECT_NEAR(made.efficiency(1), 1, 1e-5);
}

TEST(Simulate, WhatTravelsBeforeTheLastGradientIsHidden) {
  // Two ranks, direct: bytes / bandwidth = 0.1 s for each bucket. The first is hidden, the second is not.
  Prediction made = predict(workload({{"a", 1e8, 0.5}, {"b", 1e8, 0.8}}, 1), 2, network(0, 1e9, "direct"), 1e8);
  EXPECT_EQ(made.buckets, 2u);
  EXPECT_NEAR(made.exchanging, 0.2, 1e-3);
  EXPECT_NEAR(made.exposed, 0.1, 1e-3);
  EXPECT_NEAR(made.hidden(), 0.5, 1e-2);
  made = predict(workload({{"a", 1e8, 0.5}, {"b", 1e8, 0.8}}, 1), 2, network(0, 1e9, "direct"), 2e8);
  EXPECT_EQ(made.buckets, 1u);
  EXPECT_NEAR(made.exposed, 0.2, 1e-3);
}

/// The same schedule in small steps of time.
double in_small_steps(const Workload& given, const std::vector<std::pair<double, double>>& buckets, double share) {
  const double step = 1e-5, last = buckets.back().first;
  double now = 0, done = 0, left = 0;
  size_t next = 0;
  while (done < given.seconds) {
    if (left <= 0 && next < buckets.size() && done >= buckets[next].first - 1e-12) left = buckets[next++].second;
    const bool travels = left > 0, blocked = done >= last - 1e-12 && (travels || next < buckets.size());
    if (!blocked) done += step * (travels ? 1 - share : 1);
    if (travels) left -= step;
    now += step;
  }
  return now;
}

TEST(Simulate, SchedulesEqualASimulationInSmallStepsOfTime) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int round = 0; round < 40; ++round) {
    std::vector<Gradient> gradients;
    for (int i = 0; i < 6; ++i) gradients.push_back({"g", 1e6 * (1 + unit(random)), 0.2 + 0.7 * unit(random)});
    std::sort(gradients.begin(), gradients.end(), [](auto& a, auto& b) { return a.ready < b.ready; });
    Network link = network(1e-3, 2e7);
    link.processor_share = round % 4 == 0 ? 0 : round % 4 == 1 ? 1 : unit(random);
    const Workload given = workload(gradients, 1);
    std::vector<std::pair<double, double>> buckets;
    for (const Gradient& each : gradients) buckets.emplace_back(each.ready, all_reduce(each.bytes, 4, link).seconds);
    const Prediction made = predict(given, 4, link, 1);  // each gradient by itself
    EXPECT_EQ(made.buckets, 6u);
    EXPECT_NEAR(made.seconds, in_small_steps(given, buckets, link.processor_share), 2e-3) << round;
  }
}

TEST(Simulate, WaitingIsForTheLargestOfSoManyNormalNumbers) {
  Workload given = workload({{"a", 1, 0.5}}, 1);
  given.spread = 0.01;
  std::mt19937 random(2);
  std::normal_distribution<double> normal;
  for (int ranks : {2, 4, 64, 1000}) {
    double sum = 0;
    constexpr int kTimes = 2000;
    for (int i = 0; i < kTimes; ++i) {
      double largest = -10;
      for (int rank = 0; rank < ranks; ++rank) largest = std::max(largest, normal(random));
      sum += largest;
    }
    EXPECT_NEAR(predict(given, ranks, network(0, 1e30)).waiting, 0.01 * sum / kTimes, 0.0008) << ranks;
  }
}

TEST(Simulate, RanksThatShareAHostsProcessorsComputeLonger) {
  Network shared = network(0, 1e30);
  shared.ranks_per_host = 4, shared.cores_per_host = 2;
  EXPECT_NEAR(predict(workload({{"a", 1, 0.5}}, 1), 4, shared).seconds, 2, 1e-9);
  EXPECT_NEAR(predict(workload({{"a", 1, 0.5}}, 1), 2, shared).seconds, 1, 1e-9);
}

TEST(Simulate, NetworksAreReadFromWordsAndFiles) {
  const Network words = read_network("2.5us, 100Gb/s,ring");
  EXPECT_NEAR(words.between.latency, 2.5e-6, 1e-15);
  EXPECT_NEAR(words.between.bandwidth, 12.5e9, 1);
  EXPECT_EQ(words.topology, "ring");
  const std::string path =
      (std::filesystem::temp_directory_path() / ("network_" + std::to_string(::getpid()))).string();
  write_file(path, R"({"latency": "5us", "bandwidth": 1e9, "inside": {"latency": 1e-6, "bandwidth": "50GB/s"},
                       "ranks_per_host": 8, "topology": "tree", "processor_share": 0.25})");
  const Network file = read_network(path);
  EXPECT_EQ(file.ranks_per_host, 8);
  EXPECT_NEAR(file.inside.bandwidth, 5e10, 1);
  EXPECT_NEAR(file.processor_share, 0.25, 1e-12);
  for (const char* wrong :
       {"{", "[]", R"({"latency": 1})", R"({"latency": 1, "bandwidth": 1, "speed": 1})",
        R"({"latency": 1, "bandwidth": 0})", R"({"latency": 1, "bandwidth": 1, "ranks_per_host": 0})",
        R"({"latency": 1, "bandwidth": 1, "topology": "star"})",
        R"({"latency": 1, "bandwidth": 1, "processor_share": 2})", R"({"latency": {}, "bandwidth": 1})"}) {
    write_file(path, wrong);
    EXPECT_THROW(read_network(path), Error) << wrong;
  }
  std::filesystem::remove(path);
  for (const char* wrong :
       {"", "1us", "1us,2GB,ring,3", "1us,0GB/s", "-1us,1GB/s", "x,1GB/s", "1us,1GB/s,star", "1us,nan"}) {
    EXPECT_THROW(read_network(wrong), Error) << wrong;
  }
}

// Recordings

profile::StepInfo step(const char* name, const char* kind, std::vector<profile::Need> needs,
                       std::vector<uint64_t> updates = {}) {
  profile::StepInfo made;
  made.name = name, made.kind = kind, made.needs = std::move(needs), made.updates = std::move(updates);
  return made;
}

/// Runs of 100 ms, one after the other, whose steps take `lengths` ms each.
profile::Recording recording(profile::PlanInfo plan, const std::vector<int64_t>& lengths, int runs) {
  profile::Recording made;
  made.session.threads = 1;
  made.plans.push_back(std::move(plan));
  for (int run = 0; run < runs; ++run) {
    int64_t now = run * 100'000'000;
    const auto number = static_cast<uint32_t>(run);
    made.runs.push_back({now, now + 100'000'000, 0, 0, number, 0, RecordKind::run, 0});
    for (size_t i = 0; i < lengths.size(); now += lengths[i++] * 1'000'000)
      made.ops.push_back(
          {now, now + lengths[i] * 1'000'000, 0, static_cast<uint32_t>(i), number, 0, RecordKind::op, 0});
  }
  return made;
}

TEST(Simulate, GradientsAreThereWhenTheStepThatMakesThemEndsNotWhatDecaysOrScalesThem) {
  profile::PlanInfo plan;
  plan.name = "net";
  plan.steps = {step("forward", "contraction", {}),
                step("b/gradient", "contraction", {{0, 1000}}),             // 400 bytes, at 50 ms
                step("a/gradient", "contraction", {{0, 1000}, {1, 4000}}),  // 800 bytes, at 70 ms
                step("a/decayed", "vector", {{2, 800}}),
                step("a/update", "vector", {{3, 800}}, {800, 800}),  // weight and momentum
                step("b/moment", "vector", {{1, 400}}, {400}),
                step("b/update", "vector", {{5, 400}}, {400}),
                step("count", "vector", {}, {4})};
  const Workload made = read_workload(recording(plan, {30, 20, 20, 5, 5, 5, 5, 1}, 6));
  EXPECT_NEAR(made.seconds, 0.1, 1e-9);
  EXPECT_EQ(made.steps, 5u);
  EXPECT_NEAR(made.spread, 0, 1e-12);
  ASSERT_EQ(made.gradients.size(), 2u);
  EXPECT_EQ(made.gradients[0].name, "b/gradient");
  EXPECT_EQ(made.gradients[0].bytes, 400);
  EXPECT_NEAR(made.gradients[0].ready, 0.05, 1e-9);
  EXPECT_EQ(made.gradients[1].bytes, 800);
  EXPECT_NEAR(made.gradients[1].ready, 0.07, 1e-9);
}

TEST(Simulate, OneStepMayMakeSeveralGradients) {
  profile::PlanInfo plan;
  plan.steps = {step("norm/gradient", "vector", {}), step("scale/update", "vector", {{0, 64, 1}}, {64}),
                step("offset/update", "vector", {{0, 64, 2}}, {64})};
  const Workload made = read_workload(recording(plan, {40, 10, 10}, 5));
  EXPECT_EQ(made.bytes(), 128);
}

TEST(Simulate, CollectivesOfARecordingAreNoComputing) {
  profile::PlanInfo plan;
  plan.steps = {step("gradient", "contraction", {}), step("all_reduce", "communication", {{0, 400}}),
                step("update", "vector", {{1, 400}}, {400})};
  const Workload made = read_workload(recording(plan, {40, 30, 20}, 5));
  EXPECT_NEAR(made.seconds, 0.07, 1e-9);
  ASSERT_EQ(made.gradients.size(), 1u);
  EXPECT_EQ(made.gradients[0].name, "gradient");
  EXPECT_NEAR(made.gradients[0].ready, 0.04, 1e-9);
}

TEST(Simulate, GradientsThatComeFromOutsideAreThereWhenTheirPlanBegins) {
  profile::PlanInfo plan;
  plan.steps = {step("update", "vector", {}, {400, 400})};
  const Workload made = read_workload(recording(plan, {20}, 5));
  ASSERT_EQ(made.gradients.size(), 1u);
  EXPECT_EQ(made.gradients[0].bytes, 400);
  EXPECT_NEAR(made.gradients[0].ready, 0, 1e-9);
}

TEST(Simulate, RecordingsWithoutTrainingAreRefused) {
  profile::PlanInfo plan;
  plan.steps = {step("forward", "contraction", {})};
  EXPECT_THROW(read_workload(recording(plan, {20}, 9)), Error);
  plan.steps = {step("update", "vector", {}, {400})};
  EXPECT_THROW(read_workload(recording(plan, {20}, 3)), Error);
  EXPECT_THROW(read_workload(profile::Recording()), Error);
}

TEST(Simulate, ThePageHasTheNumbers) {
  const Workload given = workload({{"a \"quoted\" </script>", 1e6, 0.5}}, 1);
  const Network link = network(1e-5, 1e9);
  const std::vector<Prediction> made = {predict(given, 2, link), predict(given, 8, link)};
  const auto json = nlohmann::json::parse(json_of(given, link, made, kUsualBucket));
  EXPECT_EQ(json["predictions"].size(), 2u);
  EXPECT_NEAR(json["predictions"][1]["efficiency"].get<double>(), made[1].efficiency(1), 1e-12);
  const std::string page = picture(given, link, made, kUsualBucket);
  EXPECT_EQ(page.find("/*DATA*/"), std::string::npos);
  EXPECT_NE(page.find("\"ranks\":8"), std::string::npos);
}

}  // namespace
}  // namespace cairn::simulate
