// The page of a quantisation: its own style and script; the shared style and the data are put in.
#pragma once

#include <string_view>

namespace cairn::quantize {

inline constexpr std::string_view kQuantisationPage = R"page(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Quantisation</title>
<style>
/*STYLE*/
.tile b{font-size:19px}.tile span{display:block}.tiles{grid-template-columns:repeat(auto-fit,minmax(200px,1fr))}
</style></head><body><main>
<h1 id="title"></h1><div class="soft" id="sub"></div><div class="tiles" id="tiles"></div>
<div class="card"><h2>SQNR of the model's results when one layer alone is quantised, dB</h2><svg id="chart" role="img" aria-label="SQNR by layer in order of computation"></svg></div>
<div class="card"><h2>Layers</h2><div class="scroll" id="rows"></div></div>
<div class="card"><h2>How</h2><dl id="how"></dl></div>
</main><script>
const data=/*DATA*/;
const $=id=>document.getElementById(id),el=(tag,text,cls)=>{const e=document.createElement(tag);if(text!==undefined)e.textContent=text;if(cls)e.className=cls;return e};
const svg=(tag,at)=>{const e=document.createElementNS("http://www.w3.org/2000/svg",tag);for(const k in at)e.setAttribute(k,at[k]);return e};
const bytes=b=>b<1e3?b+" B":b<1e6?(b/1e3).toFixed(1)+" kB":b<1e9?(b/1e6).toFixed(1)+" MB":(b/1e9).toFixed(2)+" GB";
const db=v=>v===undefined?"":v>=200?"exact":v.toFixed(1)+" dB",points=v=>(100*v).toFixed(1)+" %";
const time=s=>s<1e-3?(s*1e6).toFixed(0)+" us":s<1?(s*1e3).toPrecision(3)+" ms":s.toFixed(2)+" s";
const left=data.layers.filter(l=>!l.quantised),p=data.provenance;
$("title").textContent=(data.layers.length-left.length)+" of "+data.layers.length+" layers quantised"+(data.within?"":": the budget does not hold");
$("sub").textContent=[p.model,p.output].filter(Boolean).join("  to  ");
const tiles=[];
if(data.final){const a=data.original.accuracy!==undefined;tiles.push([a?points(data.original.accuracy)+" to "+points(data.final.accuracy):db(data.final.sqnr),a?"accuracy, f32 to quantised":"SQNR of the results",data.within?"pass":"fail"]);
tiles.push([db(data.final.sqnr),"SQNR; all layers quantised: "+db(data.whole.sqnr),""])}
tiles.push([bytes(data.bytes_before)+" to "+bytes(data.bytes_after),"constants",""]);
if(data.seconds_after)tiles.push([time(data.seconds_before)+" to "+time(data.seconds_after),"a run on one batch, f32 to quantised",""]);
tiles.push([left.length,"layers left in f32",left.length?"warning":"pass"]);
for(const[v,t,c]of tiles){const d=el("div",undefined,"tile");d.append(el("b",String(v),c),el("span",t,"soft"));$("tiles").append(d)}
{const c=$("chart"),rows=data.layers.filter(l=>l.sqnr!==undefined),W=Math.max(300,c.clientWidth||1200),H=220,L=46,B=190,T=10;c.setAttribute("viewBox","0 0 "+W+" "+H);
if(!rows.length){const t=svg("text",{x:20,y:30});t.textContent="no layer was measured: there was no data";c.append(t)}else{
const v=rows.map(l=>Math.min(l.sqnr,100)),lo=Math.min(0,Math.floor(Math.min(...v)/10)*10),hi=Math.max(10,Math.ceil(Math.max(...v)/10)*10),Y=x=>B-(B-T)*(x-lo)/(hi-lo),w=(W-L-8)/rows.length;
for(let e=lo;e<=hi;e+=Math.max(10,Math.ceil((hi-lo)/60)*10)){c.append(svg("line",{x1:L,x2:W-8,y1:Y(e),y2:Y(e),stroke:"var(--line)"}));const t=svg("text",{x:L-6,y:Y(e)+4,"text-anchor":"end"});t.textContent=e;c.append(t)}
rows.forEach((l,i)=>{const y=Y(v[i]),z=Y(0),b=svg("rect",{x:L+i*w+w*.1,width:Math.max(1,w*.8),y:Math.min(y,z),height:Math.max(1,Math.abs(z-y)),fill:l.quantised?"var(--accent)":"var(--warn)"}),t=svg("title",{});t.textContent=l.name+"\n"+db(l.sqnr)+(l.quantised?"":"\nf32: "+l.reason);b.append(t);c.append(b)});
const t=svg("text",{x:L,y:H-8});t.textContent="in order of computation; the other colour: left in f32";c.append(t)}}
const columns=[["layer",l=>l.name,"name"],["operator",l=>l.op,""],["script",l=>l.location,"soft"],["now",l=>l.rounds_data?"integers":l.quantised?"small weights":"f32",l=>l.quantised?"pass":"warning"],["why",l=>l.reason,"soft"],["alone",l=>db(l.sqnr),"n"],["data",l=>l.low===undefined?"":l.low.toPrecision(3)+" .. "+l.high.toPrecision(3),"n"],["step",l=>l.scale===undefined?"":l.scale.toPrecision(3)+" from "+l.zero,"n"],["weights",l=>bytes(l.bytes_before),"n"],["now",l=>bytes(l.bytes_after),"n"]].filter(c=>data.layers.some(l=>c[1](l)));
const table=el("table"),head=el("tr");for(const[t,,c]of columns)head.append(el("th",t,c==="n"?"n":""));table.append(head);
for(const l of data.layers){const r=el("tr");for(const[,get,c]of columns)r.append(el("td",get(l),typeof c==="function"?c(l):c));table.append(r)}$("rows").append(table);
const add=(k,v)=>{if(v!==undefined&&v!=="")$("how").append(el("dt",k),el("dd",String(v)))};
add("model",p.model);add("SHA-256",p.sha256);add("data",p.data&&p.data+", "+data.examples+" examples");add("made by",data.producer);for(const k in data.options)add(k,data.options[k]);add("budget",data.budget);
for(const s of data.steps)add("kept since it helped",s);for(const k in data.skipped)add("not quantised","operators "+k+": "+data.skipped[k]);
</script></body></html>
)page";

}  // namespace cairn::quantize
