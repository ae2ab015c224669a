// The verb `cairn migrate`.
#pragma once

/// argv[0] is the verb. Returns the exit code: 0 clean, 1 findings or files left out, 2 wrong usage.
int migrate_main(int argc, char** argv);
