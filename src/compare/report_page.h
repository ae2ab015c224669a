// The page of a comparison: its own style and script; fill_page() puts in the shared style and the data.
#pragma once

#include <string_view>

namespace cairn::compare {

inline constexpr std::string_view kComparisonPage = R"page(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Comparison</title>
<style>
/*STYLE*/
.tile b{font-size:26px}.grid{display:grid;grid-template-columns:1fr 1fr;gap:16px}@media(max-width:900px){.grid{grid-template-columns:1fr}}
th{position:sticky;top:0;background:var(--card);cursor:pointer;user-select:none}tbody tr{cursor:pointer}tbody tr:hover,tbody tr.on{background:color-mix(in srgb,var(--accent) 10%,transparent)}
input,select{font:inherit;color:inherit;background:var(--bg);border:1px solid var(--line);border-radius:6px;padding:5px 8px}
.row{display:flex;gap:10px;align-items:center;margin-bottom:10px;flex-wrap:wrap}.row h2{margin:0;flex:1}
button{font:inherit;border:1px solid var(--line);background:var(--bg);color:inherit;border-radius:6px;padding:4px 10px;cursor:pointer}
</style></head><body><main>
<h1>Comparison</h1><div class="soft" id="paths"></div>
<div class="tiles" id="tiles"></div>
<div class="card" id="verdict"></div>
<div class="card"><div class="row"><h2>Error along the network</h2><select id="measure"></select></div><svg id="chart" role="img" aria-label="error by operator in order of execution"></svg></div>
<div class="grid"><div class="card"><h2>Worst operators</h2><div id="worst"></div></div><div class="card"><h2 id="detail-head">Tensor</h2><div id="detail" class="soft">Choose a row or a point.</div></div></div>
<div class="card"><div class="row"><h2>All tensors</h2><input id="filter" placeholder="name or type" aria-label="filter"><select id="only"><option value="">all verdicts</option><option>fail</option><option>warning</option><option>pass</option><option>none</option></select></div>
<div class="scroll"><table><thead id="head"></thead><tbody id="body"></tbody></table></div><div class="row" style="margin:10px 0 0"><span class="soft" id="shown"></span><button id="more" hidden>show more</button></div></div>
</main>
<script>
const data=/*DATA*/;
const $=id=>document.getElementById(id),el=(tag,text,cls)=>{const e=document.createElement(tag);if(text!==undefined)e.textContent=text;if(cls)e.className=cls;return e};
const num=v=>v===null||v===undefined?NaN:v==="inf"?Infinity:v==="-inf"?-Infinity:v;
const short=v=>{v=num(v);if(Number.isNaN(v))return"NaN";if(!Number.isFinite(v))return v>0?"inf":"-inf";if(v===0)return"0";const a=Math.abs(v);return a>=1e-3&&a<1e5?String(+v.toPrecision(5)):v.toExponential(2)};
const color={pass:"var(--pass)",warning:"var(--warn)",fail:"var(--fail)",none:"var(--none)"};
const rows=data.rows.map((r,i)=>({...r,i,name:r.tensor==="*"?(r.mine==="*"?r.golden:r.mine):r.tensor}));
const m=(r,k)=>r.metrics?num(r.metrics[k]):NaN;
$("paths").textContent=data.mine+"  against  "+data.golden;
for(const[k,t]of[["pass","agree"],["warning","within limits, odd"],["fail","differ"],["none","not compared"]]){const d=el("div",undefined,"tile");d.append(el("b",data.counts[k],k),el("span",t,"soft"));$("tiles").append(d)}
{const v=$("verdict"),s=rows.find(r=>r.tensor===data.first_suspect&&r.verdict==="fail");v.append(el("h2",s?"First suspect: "+s.name+(s.location?" ("+s.location+")":""):"No tensor differs"));
if(s&&s.finding)v.append(el("div",s.finding));v.append(el("div",data.advice.kind+": "+data.advice.text,"soft"));
if(data.overflow_files.length)v.append(el("div",data.overflow_files.length+" files of the overflow detection; the first: "+data.overflow_files[0],"fail"))}
const measures=[["relative Euclidean distance",r=>m(r,"RelativeEuclideanDistance"),data.thresholds.relative_euclidean],["1 - cosine similarity",r=>Math.max(0,1-m(r,"CosineSimilarity")),1-data.thresholds.cosine],["largest absolute error",r=>m(r,"MaxAbsoluteError")],["largest error over the operator's bound",r=>r.error_bound?num(r.diagnosis.worst.error)/r.error_bound:NaN,1]];
measures.forEach(([t],i)=>{const o=el("option",t);o.value=i;$("measure").append(o)});
const svg=(tag,at)=>{const e=document.createElementNS("http://www.w3.org/2000/svg",tag);for(const k in at)e.setAttribute(k,at[k]);return e};
function chart(){const[,f,limit]=measures[$("measure").value],c=$("chart"),W=Math.max(300,c.clientWidth||1200);c.textContent="";c.setAttribute("viewBox","0 0 "+W+" 300");
const pts=rows.filter(r=>r.metrics).map(r=>[r,f(r)]).filter(p=>!Number.isNaN(p[1]));
const pos=pts.map(p=>p[1]).filter(v=>v>0&&Number.isFinite(v));if(limit)pos.push(limit);
if(!pts.length){c.append(svg("text",{x:20,y:30}));c.lastChild.textContent="nothing to draw: no tensor has this number";return}
const lo=pos.length?Math.floor(Math.log10(pos.reduce((a,b)=>Math.min(a,b)))):-8,hi=Math.max(lo+1,pos.length?Math.ceil(Math.log10(pos.reduce((a,b)=>Math.max(a,b)))):0);
const L=62,R=W-12,T=12,B=262,n=Math.max(1,rows.length-1),X=i=>rows.length===1?(L+R)/2:L+(R-L)*i/n,Y=v=>v<=0?B+12:v===Infinity?T:B-(B-T)*(Math.log10(v)-lo)/(hi-lo);
const step=Math.max(1,Math.ceil((hi-lo)/7));for(let e=lo;e<=hi;e+=step){const y=Y(10**e);c.append(svg("line",{x1:L,x2:R,y1:y,y2:y,stroke:"var(--line)"}));const t=svg("text",{x:L-8,y:y+4,"text-anchor":"end"});t.textContent="1e"+e;c.append(t)}
const z=svg("text",{x:L-8,y:B+16,"text-anchor":"end"});z.textContent="0";c.append(z);
if(limit){const y=Y(limit);c.append(svg("line",{x1:L,x2:R,y1:y,y2:y,stroke:"var(--fail)","stroke-dasharray":"5 4"}));const t=svg("text",{x:R,y:y-5,"text-anchor":"end"});t.textContent="limit "+short(limit);c.append(t)}
const line=pts.filter(([r])=>!r.tensor.includes(":input:")).map(([r,v])=>X(r.i)+","+Y(v)).join(" ");c.append(svg("polyline",{points:line,fill:"none",stroke:"var(--accent)","stroke-width":1.2,opacity:.45}));
const big=pts.length>4000?1.6:pts.length>300?2.6:4;for(const[r,v]of pts){const p=svg("circle",{cx:X(r.i),cy:Y(v),r:big,fill:color[r.verdict],opacity:r.tensor.includes(":input:")?.45:.95});p.style.cursor="pointer";const t=svg("title",{});t.textContent=r.name+"\n"+short(v);p.append(t);p.onclick=()=>detail(r);c.append(p)}
const t=svg("text",{x:(L+R)/2,y:294,"text-anchor":"middle"});t.textContent="tensors in order of execution";c.append(t)}
$("measure").onchange=chart;
{const order={fail:0,warning:1},bad=rows.filter(r=>r.verdict in order).sort((a,b)=>order[a.verdict]-order[b.verdict]||m(b,"RelativeEuclideanDistance")-m(a,"RelativeEuclideanDistance")).slice(0,10);
const box=$("worst");if(!bad.length)box.append(el("div","Every compared tensor passes.","soft"));else{const t=el("table");for(const r of bad){const tr=el("tr");tr.append(el("td",r.name,"name "+r.verdict),el("td",short(m(r,"RelativeEuclideanDistance")),"n"),el("td",r.finding||"","soft name"));tr.children[0].title=r.name;tr.children[2].title=r.finding||"";tr.onclick=()=>detail(r);t.append(tr)}box.append(t)}}
function detail(r){$("detail-head").textContent=r.name;const box=$("detail");box.className="";box.textContent="";const dl=el("dl"),add=(k,v)=>{if(v!==undefined&&v!==""){dl.append(el("dt",k),el("dd",v))}};
add("verdict",r.verdict);add("why",r.reason);add("finding",r.finding);add("reference",r.golden);add("type",r.type);add("script",r.location);add("dtypes",r.dtypes.filter(x=>x).join(" against "));if(r.shape.length)add("shape","["+r.shape+"]");
if(r.diagnosis){const d=r.diagnosis;add("fit","x ~ "+short(d.scale)+" y + "+short(d.bias));add("SQNR",short(d.sqnr_db)+" dB");add("|x-y|","p50 "+short(d.p50)+", p99 "+short(d.p99)+", p99.9 "+short(d["p99.9"]));add("worst",short(d.worst.error)+" at "+d.worst.index+": "+short(d.worst.mine)+" against "+short(d.worst.golden));
if(r.error_bound)add("bound",short(r.error_bound)+" for this operator alone");if(d.nan[0]+d.nan[1]+d.infinite[0]+d.infinite[1])add("not finite","NaN "+d.nan.join(" / ")+", infinite "+d.infinite.join(" / "));
for(const k in r.metrics)add(k,typeof r.metrics[k]==="string"?r.metrics[k]:short(r.metrics[k]))}
box.append(dl);if(r.diagnosis){const h=r.diagnosis.ulp_histogram,top=Math.max(...h,1),w=Math.min(26,480/h.length),s=svg("svg",{viewBox:"0 0 500 110"});h.forEach((v,i)=>{const y=v?Math.max(2,80*Math.log1p(v)/Math.log1p(top)):0,b=svg("rect",{x:10+i*w,y:85-y,width:w-2,height:y,fill:"var(--accent)"}),t=svg("title",{});t.textContent=(i?"about 2^"+(i-2)+" units":"equal")+": "+v;b.append(t);s.append(b)});const t=svg("text",{x:10,y:102});t.textContent="units in the last place: equal, then doubling (count on a log scale)";s.append(t);box.append(s)}
document.querySelectorAll("tr.on").forEach(x=>x.classList.remove("on"));const tr=document.querySelector('tr[data-i="'+r.i+'"]');if(tr)tr.classList.add("on")}
const columns=[["#",r=>r.i,1],["verdict",r=>r.verdict],["tensor",r=>r.name],["type",r=>r.type],["reference",r=>r.golden],["cosine",r=>m(r,"CosineSimilarity"),1],["rel. Euclid",r=>m(r,"RelativeEuclideanDistance"),1],["max abs",r=>m(r,"MaxAbsoluteError"),1],["RMSE",r=>m(r,"RootMeanSquareError"),1],["mean rel",r=>m(r,"MeanRelativeError"),1],["bound",r=>num(r.error_bound),1],["remark",r=>r.finding||r.reason||""]];
let by=0,down=false,most=500;const hr=el("tr");columns.forEach(([t,,n],i)=>{const th=el("th",t,n?"n":"");th.onclick=()=>{down=by===i?!down:!!n&&i>0;by=i;table()};hr.append(th)});$("head").append(hr);
function table(){const q=$("filter").value.toLowerCase(),o=$("only").value,f=columns[by][1];let list=rows.filter(r=>(!o||r.verdict===o)&&(!q||(r.name+" "+r.type+" "+r.golden).toLowerCase().includes(q)));
list.sort((a,b)=>{const x=f(a),y=f(b);if(typeof x==="number"){if(Number.isNaN(x))return Number.isNaN(y)?a.i-b.i:1;if(Number.isNaN(y))return-1;return(down?y-x:x-y)||a.i-b.i}return(down?-1:1)*String(x).localeCompare(String(y))||a.i-b.i});
const body=$("body");body.textContent="";for(const r of list.slice(0,most)){const tr=el("tr");tr.dataset.i=r.i;columns.forEach(([t,g,n],i)=>{const v=g(r),td=el("td",n?(i?(r.metrics?short(v):""):v):v,n?"n":i===1?r.verdict:"name");if(!n)td.title=v;tr.append(td)});tr.onclick=()=>detail(r);body.append(tr)}
$("shown").textContent=Math.min(most,list.length)+" of "+list.length+" tensors";$("more").hidden=list.length<=most}
$("filter").oninput=$("only").onchange=table;$("more").onclick=()=>{most*=4;table()};
chart();addEventListener("resize",chart);table();{const s=rows.find(r=>r.tensor===data.first_suspect&&r.verdict==="fail");if(s)detail(s)}
</script></body></html>
)page";

}  // namespace cairn::compare
