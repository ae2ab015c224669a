// `cairn compare` as a program of its own, under the platform's name.
#include "cairn/compare.h"

int main(int argc, char** argv) { return compare_main(argc, argv); }
