// What the pages share that are one file each: colours, type and tables, and how their data goes into them.
#pragma once

#include <string>
#include <string_view>

namespace cairn {

/// `page` with the shared style in the place of the mark STYLE and `json` in that of DATA, each between /* and */.
std::string fill_page(std::string_view page, std::string_view json);

}  // namespace cairn
