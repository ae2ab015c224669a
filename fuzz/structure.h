// Half of the mutants of a program that reads protocol buffers are sound in their form and damaged in their meaning.
#pragma once

#include "answers.h"
#include "frontends/mutants.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  std::mt19937_64 random(seed);
  if (random() % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::string mutant = cairn::mutate_structure(std::string(cairn::fuzz::text_of(data, size)), random);
  if (mutant.size() > most) return size;
  std::copy(mutant.begin(), mutant.end(), data);
  return mutant.size();
}
