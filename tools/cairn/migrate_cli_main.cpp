// `cairn migrate` as a program of its own, for tests and for builds without the rest.
#include "cairn/migrate.h"

int main(int argc, char** argv) { return migrate_main(argc, argv); }
