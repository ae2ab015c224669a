// The page of `cairn data inspect --html`: samples as pictures.
#pragma once

#include <string_view>

namespace cairn::cli {

inline constexpr std::string_view kDataPage = R"page(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Data</title>
<style>
/*STYLE*/
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:12px}.sample img{width:100%;height:140px;object-fit:contain;background:var(--line);border-radius:6px;image-rendering:pixelated}
.sample{font-size:12px;overflow-wrap:anywhere}
</style></head><body><main>
<h1 id="title"></h1><div class="soft" id="about"></div>
<div class="card"><h2>Columns</h2><table id="columns"><thead><tr><th>column</th><th>type</th><th>shape</th><th>first row</th></tr></thead><tbody></tbody></table></div>
<div class="card" id="classes" hidden><h2>Classes</h2><div class="scroll"><table><thead><tr><th>label</th><th class="n">rows</th></tr></thead><tbody></tbody></table></div></div>
<div class="card"><h2>Rows</h2><div class="grid" id="rows"></div></div>
<script id="data" type="application/json">/*DATA*/</script>
<script>
const data=JSON.parse(document.getElementById('data').textContent),at=id=>document.getElementById(id)
const cell=(row,text,name)=>{const td=document.createElement('td');td.textContent=text;if(name)td.className=name;row.append(td)}
const line=(body,cells)=>{const row=document.createElement('tr');cells.forEach(([text,name])=>cell(row,text,name));body.append(row)}
at('title').textContent=data.path
at('about').textContent=`${data.kind}, ${data.rows.toLocaleString('en')} rows in ${data.files.toLocaleString('en')} files`
for(const c of data.columns)line(at('columns').tBodies[0],[[c.name],[c.type],['['+c.shape.join(', ')+']'],[c.example]])
if(data.counts.length){at('classes').hidden=false;for(const c of data.counts)line(at('classes').querySelector('tbody'),[[c.name],[c.rows.toLocaleString('en'),'n']])}
for(const s of data.samples){const card=document.createElement('div');card.className='sample'
for(const p of s.pictures){const img=document.createElement('img');img.src=p;img.loading='lazy';card.append(img)}
const text=document.createElement('div');text.innerHTML=`<span class="soft">row ${s.row}</span> `;text.append(s.values.map(([n,v])=>n+': '+v).join(', '));card.append(text);at('rows').append(card)}
</script></main></body></html>
)page";

}  // namespace cairn::cli
