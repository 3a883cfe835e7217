const l=document.documentElement.lang;
for(const t of document.querySelectorAll("time"))
t.textContent=new Date(t.dateTime).toLocaleString(navigator.languages.find(n=>n.startsWith(l))||l,{dateStyle:"long",timeStyle:"short"});
for(const f of document.querySelectorAll("input[type=password]")){
const b=document.createElement("button");
b.type="button";
b.className="plain slim show";
b.textContent=document.currentScript.dataset.show;
b.setAttribute("aria-pressed","false");
b.onclick=()=>{
const s=f.type==="password";
f.type=s?"text":"password";
b.setAttribute("aria-pressed",s)};
f.form.addEventListener("submit",()=>{f.type="password"});
f.after(b)}
