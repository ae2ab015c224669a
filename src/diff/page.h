// The page of a difference: its own style and script, the shared style and the data put in.
#pragma once

#include <string_view>

namespace cairn::diff {

inline constexpr std::string_view kDifferencePage = R"page(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Difference</title>
<style>
/*STYLE*/
.tile b{font-size:20px;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}.culprit{border-left:4px solid var(--fail)}
code{font:12px ui-monospace,monospace;overflow-wrap:anywhere}tbody tr:hover{background:color-mix(in srgb,var(--accent) 8%,transparent)}
input{font:inherit;color:inherit;background:var(--bg);border:1px solid var(--line);border-radius:6px;padding:5px 8px}
.row{display:flex;gap:10px;align-items:center;margin-bottom:10px;flex-wrap:wrap}.row h2{margin:0;flex:1}
@media(max-width:800px){.tiles{grid-template-columns:1fr 1fr}}
</style></head><body><main>
<h1 id="title"></h1><div class="soft" id="paths"></div><div class="tiles" id="tiles"></div><div id="culprits"></div>
<div class="card"><h2>Error along the network, in units of what rounding explains</h2><svg id="chart" role="img" aria-label="error over what rounding explains, by operator in order of computation"></svg></div>
<div class="card"><h2>Outputs</h2><div class="scroll" id="outputs"></div></div>
<div class="card"><div class="row"><h2>Every value that both have</h2><input id="filter" placeholder="name or type" aria-label="filter"></div><div class="scroll" id="rows"></div><div class="soft" id="below"></div></div>
</main><script>
const data=/*DATA*/;
const $=id=>document.getElementById(id),el=(tag,text,cls)=>{const e=document.createElement(tag);if(text!==undefined)e.textContent=text;if(cls)e.className=cls;return e};
const num=v=>v==="inf"?Infinity:v===null?NaN:v;
const short=v=>{v=num(v);if(Number.isNaN(v))return"NaN";if(!Number.isFinite(v))return"inf";if(v===0)return"0";const a=Math.abs(v);return a>=1e-3&&a<1e5?String(+v.toPrecision(4)):v.toExponential(2)};
const state=r=>r.off?(r.suspect?"fail":"warning"):"pass",word={fail:"wrong",warning:"inherited",pass:"agrees"};
$("title").textContent=data.equal?"No difference beyond rounding":data.culprits.length?"First wrong: "+data.culprits[0].name:"The outputs differ";
$("paths").textContent=data.mine+"  against  "+data.golden;
for(const[t,v,c]of[["outputs",data.equal?"agree":"differ",data.equal?"pass":"fail"],["values compared",data.rows.length],["beyond rounding",data.rows.filter(r=>r.off).length],["runs of the model",data.runs]]){const d=el("div",undefined,"tile");d.append(el("b",String(v),c),el("span",t,"soft"));$("tiles").append(d)}
for(const c of data.culprits){const box=el("div",undefined,"card culprit");box.append(el("h2",c.name+(c.location?" ("+c.location+")":"")));const dl=el("dl"),add=(k,v)=>{if(v!==""&&v!==undefined)dl.append(el("dt",k),el("dd",v))};
add("operator",c.op+" "+c.dtype+"["+c.dims+"]");add("what is odd",c.finding);add("error",short(c.error)+", where rounding explains "+short(c.allowed));add("by itself",short(c.local_error)+" when it reads the right values");
add("made by",c.cause);add("kernel",c.kernel_name);add("holds",c.sources.join(", "));add("it reads",c.unpaired.map(n=>n+", which has no counterpart").join("; "));if(c.inner)add("in it",c.inner.name+(c.inner.location?" ("+c.inner.location+")":"")+", "+c.inner.op+": the first that differs when they are done one by one");add("proof",c.confirmed?"right values in its place mend what follows":"right values in its place do not mend what follows");add("reproducer",c.reproducer);box.append(dl);$("culprits").append(box)}
const svg=(tag,at)=>{const e=document.createElementNS("http://www.w3.org/2000/svg",tag);for(const k in at)e.setAttribute(k,at[k]);return e};
{const c=$("chart"),W=Math.max(300,c.clientWidth||1200),rows=data.rows,ratio=r=>r.nonfinite?Infinity:num(r.allowed)>0?num(r.error)/num(r.allowed):num(r.error)>0?Infinity:0;
if(!rows.length){const t=svg("text",{x:20,y:30});t.textContent="no value has a counterpart on the other side";c.append(t)}else{
const pos=rows.map(ratio).filter(v=>v>0&&Number.isFinite(v));pos.push(1);const lo=Math.max(-9,Math.floor(Math.log10(Math.min(...pos)))),hi=Math.min(12,Math.max(1,Math.ceil(Math.log10(Math.max(...pos)))));
c.setAttribute("viewBox","0 0 "+W+" 260");const L=62,R=W-12,T=14,B=220,X=i=>rows.length===1?(L+R)/2:L+(R-L)*i/(rows.length-1),Y=v=>v===Infinity?T:v<=0?B+12:Math.max(T,Math.min(B,B-(B-T)*(Math.log10(v)-lo)/(hi-lo)));
const step=Math.max(1,Math.ceil((hi-lo)/7));for(let e=lo;e<=hi;e+=step){const y=Y(10**e);c.append(svg("line",{x1:L,x2:R,y1:y,y2:y,stroke:"var(--line)"}));const t=svg("text",{x:L-8,y:y+4,"text-anchor":"end"});t.textContent="1e"+e;c.append(t)}
const y=Y(1);c.append(svg("line",{x1:L,x2:R,y1:y,y2:y,stroke:"var(--fail)","stroke-dasharray":"5 4"}));
c.append(svg("polyline",{points:rows.map((r,i)=>X(i)+","+Y(ratio(r))).join(" "),fill:"none",stroke:"var(--accent)",opacity:.4}));
rows.forEach((r,i)=>{const s=state(r),p=svg("circle",{cx:X(i),cy:Y(ratio(r)),r:s==="fail"?6:3.5,fill:{fail:"var(--fail)",warning:"var(--warn)",pass:"var(--pass)"}[s]}),t=svg("title",{});t.textContent=r.name+"\n"+short(ratio(r));p.append(t);c.append(p)});
const t=svg("text",{x:(L+R)/2,y:252,"text-anchor":"middle"});t.textContent="values in order of computation; above the line is more than rounding explains";c.append(t)}}
let common=data.rows.length>1?data.rows[0].name:"";for(const r of data.rows)while(!r.name.startsWith(common))common=common.slice(0,-1);common=common.slice(0,common.lastIndexOf("/")+1);
const below=name=>name.startsWith(common)?name.slice(common.length):name;
const columns=[["value",r=>below(r.name),"name"],["verdict",r=>word[state(r)],state],["type",r=>r.op,"name"],["script",r=>r.location,"soft"],["kernel",r=>r.kernel.split(",")[0],"soft name"],["error",r=>short(r.error),"n"],["rounding explains",r=>short(r.allowed),"n"],["size",r=>short(r.spread),"n"],["what is odd",r=>r.finding,"soft name"]];
function table(rows){const t=el("table"),h=el("tr"),shown=columns.filter(c=>rows.some(r=>c[1](r)!==""));for(const[x,,c]of shown)h.append(el("th",x,c==="n"?"n":""));const head=el("thead");head.append(h);t.append(head);const b=el("tbody");
for(const r of rows){const tr=el("tr");tr.title=r.name+"\n"+r.kernel+"\n"+r.finding;for(const[,get,cls]of shown)tr.append(el("td",get(r),typeof cls==="function"?cls(r):cls));b.append(tr)}t.append(b);return t}
$("outputs").append(table(data.outputs));
const fill=()=>{const q=$("filter").value.toLowerCase();$("rows").replaceChildren(table(data.rows.filter(r=>!q||(r.name+" "+r.op).toLowerCase().includes(q))))};$("filter").oninput=fill;fill();if(common)$("below").textContent="names below "+common;
</script></body></html>
)page";

}  // namespace cairn::diff
