#include "cairn/migrate.h"
#include "migrate/migrate.h"
int migrate_main(int, char**) {
  return (int)cairn::migrate::migrate({}, {}).files.size();
}
