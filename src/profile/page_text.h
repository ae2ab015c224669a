// The page of a profile: its own style and script; fill_page() puts in the shared style and the data.
#pragma once

#include <string_view>

namespace cairn::profile {

inline constexpr std::string_view kPage = R"page(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Profile</title>
<style>
/*STYLE*/
:root{--contraction:#3461c9;--vector:#1a8754;--fallback:#c2313f;--control:#8a5cc2;--copy:#98a1ae;--host:#e0a03c;--gap:#d5dae2;--refresh:#1a8754}
@media(prefers-color-scheme:dark){:root{--contraction:#6f96f5;--vector:#46b881;--fallback:#f0707c;--control:#b794e6;--gap:#3a4454}}
.tiles{grid-template-columns:repeat(auto-fit,minmax(130px,1fr))}.tile b{font-size:22px}th{position:sticky;top:0;background:var(--card);cursor:pointer}tbody tr:hover{background:color-mix(in srgb,var(--accent) 10%,transparent)}
.row{display:flex;gap:10px;align-items:center;margin-bottom:8px;flex-wrap:wrap}.row h2{margin:0;flex:1}li{margin-bottom:8px}rect.op:hover{stroke:var(--ink);stroke-width:1}
input,select{font:inherit;color:inherit;background:var(--bg);border:1px solid var(--line);border-radius:6px;padding:4px 8px}input{width:220px}.key{display:inline-block;width:10px;height:10px;border-radius:2px;margin:0 4px 0 8px}
.bar{display:inline-block;height:9px;border-radius:2px;vertical-align:middle;background:var(--accent);margin-right:6px}
</style></head><body><main>
<h1 id="title">Profile</h1><div class="soft" id="about"></div><div class="tiles" id="tiles"></div>
<div class="card"><h2>Advice</h2><ul id="advice"></ul></div>
<div class="card"><div class="row"><h2>Iterations: host, steps, and neither</h2><span class="soft" id="keys1"></span></div><svg id="iterations" role="img" aria-label="time of each iteration: host, steps, no step"></svg></div>
<div class="card"><div class="row"><h2>Timeline</h2><span class="soft" id="keys2"></span><select id="which" aria-label="iteration"></select></div><svg id="timeline" role="img" aria-label="steps of one iteration by thread"></svg><div class="soft" id="detail">Point at a step; the wheel zooms, dragging moves.</div></div>
<div class="card"><div class="row"><h2>Steps by time</h2><input id="filter" placeholder="name, type, kernel or line" aria-label="filter"></div><div class="scroll"><table><thead><tr id="head"></tr></thead><tbody id="body"></tbody></table></div><div class="soft" id="shown"></div></div>
<div class="card" id="own"><h2>Ranges of the program</h2><div class="scroll"><table><thead><tr id="ownhead"></tr></thead><tbody id="ownbody"></tbody></table></div></div>
<div class="card"><h2>Memory over the steps</h2><svg id="memory" role="img" aria-label="memory in use at each step"></svg><div class="soft" id="memorytext"></div></div>
</main><script>
const data=/*DATA*/;
const $=id=>document.getElementById(id),el=(t,x,c)=>{const e=document.createElement(t);if(x!==undefined)e.textContent=x;if(c)e.className=c;return e};
const svg=(t,a,x)=>{const e=document.createElementNS("http://www.w3.org/2000/svg",t);for(const k in a)e.setAttribute(k,a[k]);if(x!==undefined)e.textContent=x;return e};
const time=us=>us>=1e6?(us/1e6).toFixed(2)+" s":us>=1e3?(us/1e3).toFixed(us<1e4?2:1)+" ms":us.toFixed(us<10?2:1)+" µs";
const bytes=b=>b>=1e9?(b/1e9).toFixed(2)+" GB":b>=1e6?(b/1e6).toFixed(1)+" MB":b>=1e3?(b/1e3).toFixed(1)+" kB":b+" B";
const wide=id=>{const g=$(id);g.textContent="";return Math.max(300,g.clientWidth||1200)},box=(g,w,h)=>g.setAttribute("viewBox","0 0 "+w+" "+h);
const ticks=(a,b,n)=>{const s=Math.max((b-a)/n,1e-9),p=10**Math.floor(Math.log10(s)),q=[1,2,5,10].find(q=>q*p>=s*.999)*p,list=[];for(let v=Math.ceil(a/q-1e-6)*q;v<=b+q*1e-6;v+=q)list.push(v);return list};
const round=us=>us>=1e6?+(us/1e6).toPrecision(4)+" s":us>=1e3?+(us/1e3).toPrecision(4)+" ms":+us.toPrecision(4)+" µs";
const used=data.steps.filter(x=>x.count);let common=used.length>1?used[0].name:"";for(const x of used)while(!x.name.startsWith(common))common=common.slice(0,-1);common=common.slice(0,common.lastIndexOf("/")+1);for(const x of data.steps)x.short=x.name.startsWith(common)?x.name.slice(common.length):x.name;
const s=data.session;$("title").textContent="Profile of "+(data.model||"nothing");document.title=$("title").textContent;
$("about").textContent=[s.command,s.processor+", "+s.threads+" threads","level "+s.level,data.machine.gflops?"measured peak "+data.machine.gflops.toFixed(0)+" GFLOP/s, "+data.machine.gbytes.toFixed(1)+" GB/s from memory, "+data.machine.cached.toFixed(0)+" GB/s from caches":"peak not measured",data.counters,data.remark].filter(x=>x).join(" · ");
const tile=(b,t)=>{const d=el("div",undefined,"tile");d.append(el("b",b),el("span",t,"soft"));$("tiles").append(d)};
tile(time(data.median_busy),"median iteration, begin to end");tile(time(data.median_period),"median period, end to end");tile(String(data.iteration_count),"iterations of the main model");
tile(data.op_count.toLocaleString("en"),"steps recorded");tile((100*data.overhead).toFixed(2)+" %","cost of recording");
if(!data.advice.length)$("advice").append(el("li","Nothing stands out."));
for(const a of data.advice){const l=el("li");l.append(el("div",a.text),el("div",a.evidence,"soft"));$("advice").append(l)}
const keys=(id,list)=>{for(const[c,t]of list){const k=el("span",undefined,"key");k.style.background="var(--"+c+")";const both=el("span");both.style.whiteSpace="nowrap";both.append(k,t);$(id).append(both," ")}};
keys("keys1",[["host","host, before"],["contraction","steps"],["gap","no step"]]);keys("keys2",[["contraction","matrix"],["vector","element-wise"],["fallback","slow engine"],["control","control"],["copy","copy"]]);
function iterations(){const g=$("iterations"),W=wide("iterations"),L=60,R=W-8,B=168,T=24,n=data.iterations.length,w=(R-L)/Math.max(n,1);box(g,W,206);
const totals=data.iterations.map(i=>Math.max(0,i[1])+i[2]+i[3]).sort((a,b)=>a-b),cap=n?Math.max(Math.min(totals[n-1],4*totals[n>>1]),1e-3):1,Y=v=>B-(B-T)*Math.min(1,v/cap);
g.append(svg("text",{x:4,y:12},"time of an iteration"));
for(const v of ticks(0,cap,4)){const y=Y(v);g.append(svg("line",{x1:L,x2:R,y1:y,y2:y,stroke:"var(--line)"}),svg("text",{x:L-6,y:y+4,"text-anchor":"end"},round(v)))}
data.iterations.forEach((i,k)=>{let at=0;for(const[c,v]of[["contraction",i[2]],["gap",i[3]],["host",Math.max(0,i[1])]]){const y=Y(at+v),h=Y(at)-y;at+=v;if(h>0)g.append(svg("rect",{x:L+k*w,y,width:Math.max(w-(w>4?1:0),.6),height:h,fill:"var(--"+c+")"}));}
g.lastChild&&g.lastChild.append(svg("title",{},"iteration "+i[0]+": host "+time(i[1])+", steps "+time(i[2])+", no step "+time(i[3])))});
if(n)for(const v of ticks(data.iterations[0][0],data.iterations[n-1][0],Math.max(2,Math.min(8,(R-L)/80)))){const k=data.iterations.findIndex(i=>i[0]>=v);if(Number.isInteger(v)&&k>=0)g.append(svg("text",{x:L+(k+.5)*w,y:184,"text-anchor":"middle"},v))}
g.append(svg("text",{x:(L+R)/2,y:202,"text-anchor":"middle"},"iteration"))}
data.timelines.forEach((t,i)=>{const o=el("option",t.title);o.value=i;$("which").append(o)});
let view=null;
function timeline(){const t=data.timelines[$("which").value],g=$("timeline");if(!t||!t.ops.length&&!t.ranges.length){box(g,wide("timeline"),40);g.append(svg("text",{x:20,y:30},"no steps were recorded"));return}
const threads=[...new Set(t.ops.map(o=>o[2]))],W=wide("timeline"),L=60,R=W-8,total=t.length;if(!view)view=[0,total];const X=v=>L+(R-L)*(v-view[0])/(view[1]-view[0]),H=30,above=t.ranges.length;
box(g,W,56+(above+threads.length)*H);
t.ranges.forEach((list,i)=>{g.append(svg("text",{x:4,y:22+i*H},i?"":"ranges"));for(const[b,d,n]of list){if(b+d<view[0]||b>view[1])continue;const x=Math.max(L,X(b)),w=Math.max(.5,Math.min(R,X(b+d))-x);
const r=svg("rect",{x,y:6+i*H,width:w,height:H-8,fill:"var(--accent)",opacity:.3,class:"op"});r.append(svg("title",{},n+" "+time(d)));r.onmouseenter=()=>{$("detail").textContent=n+" (range) "+time(d)};g.append(r);
if(w>60)g.append(svg("text",{x:x+4,y:21+i*H,style:"fill:var(--ink);pointer-events:none"},n.slice(0,Math.floor(w/7))))}});
threads.forEach((th,i)=>g.append(svg("text",{x:4,y:22+(above+i)*H},"thread "+th)));
for(const[b,d,th,k]of t.ops){if(b+d<view[0]||b>view[1])continue;const x=Math.max(L,X(b)),w=Math.max(.5,Math.min(R,X(b+d))-x),st=data.steps[k],y=6+(above+threads.indexOf(th))*H;
const r=svg("rect",{x,y,width:w,height:H-8,fill:"var(--"+st.kind+")",class:"op"});r.append(svg("title",{},st.name+" "+time(d)));r.onmouseenter=()=>{$("detail").textContent=st.name+" ("+st.type+(st.line?", "+st.line:"")+") "+time(d)+" · "+st.kernel+" · "+st.shapes};g.append(r);
if(w>60){const x2=svg("text",{x:x+4,y:y+15,style:"fill:#fff;pointer-events:none"},st.short.slice(0,Math.floor(w/7)));g.append(x2)}}
const y=(above+threads.length)*H+8;for(const v of ticks(view[0],view[1],Math.max(2,(R-L)/160)))g.append(svg("line",{x1:X(v),x2:X(v),y1:y-2,y2:y+4,stroke:"var(--soft)"}),svg("text",{x:Math.min(X(v),R-14),y:y+16,"text-anchor":"middle"},round(v)));g.append(svg("text",{x:(L+R)/2,y:y+34,"text-anchor":"middle"},"time since the iteration began"))
for(const[n,v]of t.marks)if(v>=view[0]&&v<=view[1])g.append(svg("line",{x1:X(v),x2:X(v),y1:0,y2:y,stroke:"var(--ink)","stroke-dasharray":"3 3"}),svg("text",{x:X(v)-4,y:y+4,"text-anchor":"end"},n))}
$("timeline").addEventListener("wheel",e=>{if(!view)return;e.preventDefault();const r=$("timeline").getBoundingClientRect(),f=Math.min(1,Math.max(0,(e.clientX-r.left-60)/(r.width-68))),at=view[0]+f*(view[1]-view[0]),z=e.deltaY>0?1.25:.8,total=data.timelines[$("which").value].length;view=[Math.max(0,at-(at-view[0])*z),Math.min(total,at+(view[1]-at)*z)];timeline()},{passive:false});
let from=null;$("timeline").addEventListener("mousedown",e=>from=[e.clientX,...view]);addEventListener("mouseup",()=>from=null);addEventListener("mousemove",e=>{if(!from)return;const d=(from[0]-e.clientX)/$("timeline").getBoundingClientRect().width*(from[2]-from[1]);view=[from[1]+d,from[2]+d];timeline()});
$("which").onchange=()=>{view=null;timeline()};
const columns=[["step",r=>r.short],["type",r=>r.type],["kernel",r=>r.kernel,0,v=>v.split(",")[0]],["script line",r=>r.line],["runs",r=>r.count,1],["mean",r=>r.mean,1,time],["GFLOP/s",r=>r.gflops,1,v=>v?v.toFixed(1):""],["GB/s",r=>r.gbytes,1,v=>v?v.toFixed(1):""],["of roofline",r=>r.roofline,1,v=>v===null?"N/A":(100*v).toFixed(0)+" %"],["share",r=>r.share,1,v=>(100*v).toFixed(1)+" %"]].filter(c=>c[0]!=="script line"||data.steps.some(r=>r.line));
let by=columns.length-1,down=true;columns.forEach(([t,,n],i)=>{const h=el("th",t,n?"n":"");h.onclick=()=>{down=by===i?!down:true;by=i;rows()};$("head").append(h)});
function rows(){const q=$("filter").value.toLowerCase(),f=columns[by][1],list=data.steps.filter(r=>r.count&&(!q||(r.name+r.type+r.kernel+r.line+r.sources.join(" ")).toLowerCase().includes(q)));list.sort((a,b)=>{const x=f(a),y=f(b);return(x<y?-1:x>y?1:0)*(down?-1:1)});
$("body").textContent="";for(const r of list.slice(0,300)){const tr=el("tr");tr.title=r.name+"\n"+r.kernel+"\n"+r.sources.join("\n")+"\n"+r.shapes;columns.forEach(([t,g,n,show],i)=>{const td=el("td",undefined,n?"n":"name");if(t==="share"){const b=el("span",undefined,"bar");b.style.width=Math.round(60*r.share)+"px";td.append(b)}td.append(show?show(g(r)):String(g(r)));tr.append(td)});$("body").append(tr)}
$("shown").textContent=Math.min(300,list.length)+" of "+list.length+" steps"+(common?", names below "+common:"")}
$("filter").oninput=rows;rows();
if(!data.ranges.length)$("own").remove();else{for(const[t,n]of[["range",""],["times","n"],["mean","n"],["longest","n"],["in all","n"]])$("ownhead").append(el("th",t,n));
for(const[n,c,...v]of data.ranges){const tr=el("tr");tr.append(el("td",n,"name"),el("td",String(c),"n"));for(const x of v)tr.append(el("td",time(x),"n"));$("ownbody").append(tr)}}
function memory(){const g=$("memory"),m=data.memory,W=wide("memory"),L=60,R=W-8,B=150,T=24,most=Math.max(1,m.arena,...m.live),n=Math.max(1,m.live.length),X=i=>L+(R-L)*i/n,Y=v=>B-(B-T)*v/most;box(g,W,188);
g.append(svg("text",{x:4,y:12},"memory in use"));
for(const v of ticks(0,most,3))g.append(svg("line",{x1:L,x2:R,y1:Y(v),y2:Y(v),stroke:"var(--line)"}),svg("text",{x:L-6,y:Y(v)+4,"text-anchor":"end"},bytes(+v.toPrecision(4))));
let p="M"+L+","+B;m.live.forEach((v,i)=>p+="L"+X(i)+","+Y(v)+"L"+X(i+1)+","+Y(v));g.append(svg("path",{d:p+"L"+X(m.live.length)+","+B+"Z",fill:"var(--accent)",opacity:.35}));
g.append(svg("line",{x1:L,x2:R,y1:Y(m.arena),y2:Y(m.arena),stroke:"var(--fallback)","stroke-dasharray":"5 4"}));
for(const v of ticks(0,m.live.length,Math.max(2,Math.min(8,(R-L)/80))))if(Number.isInteger(v))g.append(svg("text",{x:Math.min(X(v),R-10),y:166,"text-anchor":"middle"},v));
g.append(svg("text",{x:(L+R)/2,y:184,"text-anchor":"middle"},"step"))}
$("memorytext").textContent="In use at each step of plan "+data.memory.plan+"; the dashed line is the arena, "+bytes(data.memory.arena)+".";
function charts(){iterations();timeline();memory()}charts();addEventListener("resize",charts);
</script></body></html>
)page";

}  // namespace cairn::profile
