// The page of the errors against float64: its own style and script, the shared style and the data put in.
#pragma once

#include <string_view>

namespace cairn::diff {

inline constexpr std::string_view kTruthPage = R"page(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Rounding against float64</title>
<style>
/*STYLE*/
.tile b{font-size:20px;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
tbody tr:hover{background:color-mix(in srgb,var(--accent) 8%,transparent)}
input{font:inherit;color:inherit;background:var(--bg);border:1px solid var(--line);border-radius:6px;padding:5px 8px}
.row{display:flex;gap:10px;align-items:center;margin-bottom:10px;flex-wrap:wrap}.row h2{margin:0;flex:1}
@media(max-width:800px){.tiles{grid-template-columns:1fr 1fr}}
</style></head><body><main>
<h1>Rounding against float64</h1><div class="soft" id="paths"></div><div class="tiles" id="tiles"></div>
<div class="card"><h2>Error along the network, root mean square over that of the value</h2><svg id="chart" role="img" aria-label="error of both sides against float64, by operator in order of computation"></svg></div>
<div class="card"><h2>Outputs</h2><div class="scroll" id="outputs"></div></div>
<div class="card"><div class="row"><h2>Operators</h2><input id="filter" placeholder="name or type" aria-label="filter"></div><div class="scroll" id="rows"></div></div>
</main><script>
const data=/*DATA*/;
const $=id=>document.getElementById(id),el=(tag,text,cls)=>{const e=document.createElement(tag);if(text!==undefined)e.textContent=text;if(cls)e.className=cls;return e};
const short=v=>v===undefined||v===null?"":v===0?"0":v==="inf"?v:Math.abs(v)>=1e-3&&Math.abs(v)<1e5?String(+v.toPrecision(3)):v.toExponential(1);
const cls=r=>r.larger==="mine"?(r.first?"fail":"warning"):"pass",word=r=>r.mine===null?"inside a step":{mine:r.first?"ours, first here":"ours",theirs:"theirs",alike:"alike"}[r.larger];
$("paths").textContent="mine: "+data.mine+"; theirs: "+data.theirs+"; truth: "+data.truth;
for(const[t,v]of[["ours is larger",data.larger.mine],["theirs is larger",data.larger.theirs],["alike, within 1.5 times",data.larger.alike],["outputs where ours is larger",data.outputs.filter(r=>r.larger==="mine").length]]){const d=el("div",undefined,"tile");d.append(el("b",String(v)),el("span",t,"soft"));$("tiles").append(d)}
const svg=(tag,at)=>{const e=document.createElementNS("http://www.w3.org/2000/svg",tag);for(const k in at)e.setAttribute(k,at[k]);return e};
{const c=$("chart"),W=Math.max(300,c.clientWidth||1200),rows=data.rows.filter(r=>r.size>0),share=(r,s)=>r[s]===null?NaN:r[s].rms/r.size,all=rows.flatMap(r=>[share(r,"mine"),share(r,"theirs")]).filter(v=>v>0&&Number.isFinite(v));
c.setAttribute("viewBox","0 0 "+W+" 260");
if(!all.length){const t=svg("text",{x:20,y:30});t.textContent="no value errs on both sides";c.append(t)}else{
const lo=Math.floor(Math.log10(Math.min(...all))),hi=Math.max(lo+1,Math.ceil(Math.log10(Math.max(...all)))),L=62,R=W-12,T=24,B=220,X=i=>rows.length===1?(L+R)/2:L+(R-L)*i/(rows.length-1),Y=v=>B-(B-T)*(Math.log10(v)-lo)/(hi-lo);
for(let e=lo;e<=hi;e++){c.append(svg("line",{x1:L,x2:R,y1:Y(10**e),y2:Y(10**e),stroke:"var(--line)"}));const t=svg("text",{x:L-8,y:Y(10**e)+4,"text-anchor":"end"});t.textContent="1e"+e;c.append(t)}
for(const[side,colour,name,x]of[["theirs","var(--soft)","theirs",L+70],["mine","var(--accent)","ours",L]]){
const at=rows.map((r,i)=>[X(i),share(r,side)]).filter(p=>p[1]>0);c.append(svg("polyline",{points:at.map(p=>p[0]+","+Y(p[1])).join(" "),fill:"none",stroke:colour,"stroke-width":1.5}));
const t=svg("text",{x:x+4,y:14,fill:colour});t.textContent=name;c.append(t)}
const t=svg("text",{x:(L+R)/2,y:252,"text-anchor":"middle"});t.textContent="values in order of computation";c.append(t)}}
const columns=[["value",r=>r.name],["larger error",word,cls],["type",r=>r.op],["script",r=>r.location,"soft"],["kernel",r=>r.kernel.split(",")[0],"soft"],["ours, rms",r=>short(r.mine&&r.mine.rms),"n"],["theirs, rms",r=>short(r.theirs&&r.theirs.rms),"n"],["ours / theirs",r=>r.mine?short(r.ratio):"","n"],["ours, most",r=>short(r.mine&&r.mine.most),"n"],["theirs, most",r=>short(r.theirs&&r.theirs.most),"n"],["size",r=>short(r.size),"n"]];
function table(rows){const t=el("table"),h=el("tr"),shown=columns.filter(c=>rows.some(r=>c[1](r)!==""));for(const[x,,c]of shown)h.append(el("th",x,c==="n"?"n":""));const head=el("thead");head.append(h);t.append(head);const b=el("tbody");
for(const r of rows){const tr=el("tr");tr.title=r.name+"\n"+r.kernel;for(const[,get,c]of shown)tr.append(el("td",get(r),typeof c==="function"?c(r):c));b.append(tr)}t.append(b);return t}
$("outputs").append(table(data.outputs));
const fill=()=>{const q=$("filter").value.toLowerCase();$("rows").replaceChildren(table(data.rows.filter(r=>!q||(r.name+" "+r.op).toLowerCase().includes(q))))};$("filter").oninput=fill;fill();
</script></body></html>
)page";

}  // namespace cairn::diff
