#include "formats/page.h"

#include "support/error.h"

namespace cairn {

namespace {

constexpr std::string_view kStyle =
    R"css(:root{--bg:#f6f7f9;--card:#fff;--ink:#1c2430;--soft:#66707f;--line:#e2e6ec;--accent:#3461c9;--pass:#1a8754;--warn:#b8740a;--fail:#c2313f;--none:#98a1ae}
@media(prefers-color-scheme:dark){:root{--bg:#14181f;--card:#1c222c;--ink:#e4e9f1;--soft:#93a0b2;--line:#2d3644;--accent:#86a8ff;--pass:#46b881;--warn:#e0a03c;--fail:#f0707c;--none:#66707f}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:14px/1.45 system-ui,"DejaVu Sans",sans-serif}
main{max-width:1280px;margin:0 auto;padding:24px;overflow-wrap:anywhere}h1{font-size:22px;margin:0 0 4px}h2{font-size:15px;margin:0 0 12px}
.soft{color:var(--soft)}.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:16px 18px;margin-top:16px}
.tiles{display:grid;grid-template-columns:repeat(4,1fr);gap:12px;margin-top:16px}.tile{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 16px}
.tile b{display:block;font-variant-numeric:tabular-nums}.pass{color:var(--pass)}.warning{color:var(--warn)}.fail{color:var(--fail)}.none{color:var(--none)}
svg{width:100%;display:block}svg text{fill:var(--soft);font-size:11px}
table{border-collapse:collapse;width:100%;font-size:12.5px;font-variant-numeric:tabular-nums}th,td{padding:5px 8px;border-bottom:1px solid var(--line);text-align:left;white-space:nowrap}
th.n,td.n{text-align:right}.scroll{overflow:auto;max-height:560px}.name{max-width:320px;overflow:hidden;text-overflow:ellipsis}
@media(max-width:700px){main{padding:12px}.card{padding:12px}.name{max-width:160px}.tiles{grid-template-columns:1fr 1fr}}
dl{display:grid;grid-template-columns:max-content 1fr;gap:3px 16px;margin:0}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
)css";

void replace(std::string& page, std::string_view mark, std::string_view text) {
  size_t at = page.find(mark);
  CHECK(at != std::string::npos, "{}", mark);
  page.replace(at, mark.size(), text);
}

}  // namespace

std::string fill_page(std::string_view page, std::string_view json) {
  std::string data(json);
  // Inside a script element only this could end it.
  for (size_t at = 0; (at = data.find('<', at)) != std::string::npos; at += 6) data.replace(at, 1, "\\u003c");
  std::string out(page);
  replace(out, "/*STYLE*/", kStyle);
  replace(out, "/*DATA*/", data);
  return out;
}

}  // namespace cairn
