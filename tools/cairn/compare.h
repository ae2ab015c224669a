// The verb `cairn compare`: dump files against dump files, and the option form of the platform's msaccucmp.
#pragma once

/// argv[0] is the verb, or a path whose file name starts with "msaccucmp". Exit status 0: agree, 1: error, 2: differ,
/// 3: nothing could be compared. The platform's form gives 0 whenever it has written its result.
int compare_main(int argc, char** argv);
