// The page of a prediction: its own style and script; fill_page() puts in the shared style and the data.
#pragma once

#include <string_view>

namespace cairn::simulate {

inline constexpr std::string_view kPage = R"page(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Training on many ranks</title>
<style>
/*STYLE*/
:root{--compute:#3461c9;--exposed:#c2313f;--wait:#e0a03c}
.tile b{font-size:19px}.tile span{display:block}.key{display:inline-block;width:10px;height:10px;border-radius:2px;margin:0 4px 0 12px}
</style></head><body><main>
<h1 id="title"></h1><div class="soft" id="about"></div><div class="tiles" id="tiles"></div>
<div class="card"><h2>Time of a step</h2><div class="soft" id="keys"></div><svg id="bars" role="img" aria-label="time of a step by ranks"></svg></div>
<div class="card"><h2>Efficiency: how much of the ranks is used</h2><svg id="curve" role="img" aria-label="efficiency by ranks"></svg></div>
<div class="card"><h2>Numbers</h2><div class="scroll"><table><thead><tr id="head"></tr></thead><tbody id="rows"></tbody></table></div></div>
<div class="card"><h2>Gradients in the order in which they are there</h2><svg id="gradients" role="img" aria-label="bytes over time"></svg></div>
</main><script>
const data=/*DATA*/;
const $=id=>document.getElementById(id),el=(t,x,c)=>{const e=document.createElement(t);if(x!==undefined)e.textContent=x;if(c)e.className=c;return e};
const svg=(t,a,x)=>{const e=document.createElementNS("http://www.w3.org/2000/svg",t);for(const k in a)e.setAttribute(k,a[k]);if(x!==undefined)e.textContent=x;return e};
const time=s=>s>=1?s.toPrecision(3)+" s":s>=1e-3?(s*1e3).toPrecision(3)+" ms":(s*1e6).toPrecision(3)+" µs",part=v=>(100*v).toFixed(1)+" %";
const bytes=b=>b>=1e9?(b/1e9).toFixed(2)+" GB":b>=1e6?(b/1e6).toFixed(1)+" MB":b>=1e3?(b/1e3).toFixed(1)+" kB":b+" B";
const w=data.workload,P=data.predictions,n=data.network;$("title").textContent="Training of "+w.name+" on many ranks";document.title=$("title").textContent;
$("about").textContent="predicted from "+w.steps+" steps of one rank; between hosts "+time(n.between.latency)+" and "+bytes(n.between.bandwidth)+"/s, "+n.ranks_per_host+" ranks a host, "+n.topology+"; buckets of "+bytes(data.bucket);
for(const[v,t]of[[time(w.seconds),"a step on one rank"],[bytes(w.bytes),"gradients a step"],[String(w.gradients.length),"gradients"],[part(P[P.length-1].efficiency),"efficiency on "+P[P.length-1].ranks+" ranks"]]){const d=el("div",undefined,"tile");d.append(el("b",v),el("span",t,"soft"));$("tiles").append(d)}
const parts=[["compute","computing",p=>p.computing],["exposed","exchange that nothing hides",p=>p.exposed],["wait","waiting for the slowest",p=>p.waiting]];
for(const[c,t]of parts){const k=el("span",undefined,"key");k.style.background="var(--"+c+")";$("keys").append(k,t)}
const W=Math.max(300,$("bars").clientWidth||1100),L=64,R=W-10,B=180,T=12;
{const g=$("bars");g.setAttribute("viewBox","0 0 "+W+" 206");const most=Math.max(...P.map(p=>p.seconds)),Y=v=>B-(B-T)*v/most,step=(R-L)/P.length;
for(let i=0;i<=4;i++){const v=most*i/4;g.append(svg("line",{x1:L,x2:R,y1:Y(v),y2:Y(v),stroke:"var(--line)"}),svg("text",{x:L-6,y:Y(v)+4,"text-anchor":"end"},time(v)))}
P.forEach((p,i)=>{let at=0;for(const[c,t,f]of parts){const r=svg("rect",{x:L+i*step+step*.15,width:step*.7,y:Y(at+f(p)),height:Math.max(0,Y(at)-Y(at+f(p))),fill:"var(--"+c+")"});r.append(svg("title",{},t+" "+time(f(p))));g.append(r);at+=f(p)}
g.append(svg("text",{x:L+(i+.5)*step,y:198,"text-anchor":"middle"},p.ranks+" ranks"))})}
{const g=$("curve");g.setAttribute("viewBox","0 0 "+W+" 206");const far=Math.log2(Math.max(2,P[P.length-1].ranks)),X=r=>L+(R-L-20)*Math.log2(r)/far,Y=v=>B-(B-T)*v;
for(let i=0;i<=4;i++)g.append(svg("line",{x1:L,x2:R,y1:Y(i/4),y2:Y(i/4),stroke:"var(--line)"}),svg("text",{x:L-6,y:Y(i/4)+4,"text-anchor":"end"},part(i/4)));
g.append(svg("polyline",{fill:"none",stroke:"var(--accent)","stroke-width":2,points:[[1,1],...P.map(p=>[p.ranks,p.efficiency])].map(([r,v])=>X(r)+","+Y(v)).join(" ")}));
for(const p of P){const c=svg("circle",{cx:X(p.ranks),cy:Y(p.efficiency),r:4,fill:"var(--accent)"});c.append(svg("title",{},p.ranks+" ranks: "+part(p.efficiency)));g.append(c,svg("text",{x:X(p.ranks),y:198,"text-anchor":"middle"},String(p.ranks)))}}
const columns=[["ranks",p=>p.ranks],["step",p=>time(p.seconds)],["computing",p=>time(p.computing)],["exchange",p=>time(p.exchanging)],["not hidden",p=>time(p.exposed)],["waiting",p=>time(p.waiting)],["hidden",p=>part(p.hidden)],["buckets",p=>p.buckets],["algorithm",p=>p.algorithm],["as fast as",p=>(p.ranks*p.efficiency).toFixed(1)+" ranks"],["efficiency",p=>part(p.efficiency)]];
for(const[t]of columns)$("head").append(el("th",t));for(const p of P){const r=el("tr");for(const[,f]of columns)r.append(el("td",String(f(p))));$("rows").append(r)}
{const g=$("gradients");g.setAttribute("viewBox","0 0 "+W+" 206");const X=s=>L+(R-L)*s/w.seconds,Y=v=>B-(B-T)*v/Math.max(1,w.bytes);let sum=0;const line=[[0,0]];for(const d of w.gradients){line.push([d.ready,sum]);sum+=d.bytes;line.push([d.ready,sum])}line.push([w.seconds,sum]);
g.append(svg("polyline",{fill:"none",stroke:"var(--accent)","stroke-width":2,points:line.map(([s,v])=>X(s)+","+Y(v)).join(" ")}));
for(let i=0;i<=4;i++)g.append(svg("line",{x1:L,x2:R,y1:Y(w.bytes*i/4),y2:Y(w.bytes*i/4),stroke:"var(--line)"}),svg("text",{x:L-6,y:Y(w.bytes*i/4)+4,"text-anchor":"end"},bytes(w.bytes*i/4)),svg("text",{x:X(w.seconds*i/4),y:198,"text-anchor":"middle"},time(w.seconds*i/4)))}
</script></body></html>
)page";

}  // namespace cairn::simulate
