(() => {
const K = window.PublicKeyCredential, C = navigator.credentials;
if (!K || !C) return;
for (const e of document.querySelectorAll("[data-signals]"))
	for (const [name, told] of JSON.parse(e.dataset.signals))
		if (K[name]) K[name](told).catch(() => {});
const form = document.querySelector("form[data-options]");
if (!form) return;
const able = document.querySelector("[name=passkeys]");
if (able) able.value = "1";
const bytes = s => Uint8Array.from(atob(s.replace(/-/g, "+").replace(/_/g, "/")), c => c.charCodeAt(0));
const text = b => b ? btoa(String.fromCharCode(...new Uint8Array(b))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "") : undefined;
const failed = form.querySelector("[role=alert]"), fields = form.elements;
let made = Date.now(), challenge = fields.challenge.value, options = form.dataset.options, waiting;
const renew = async () => {
	const response = await fetch(form.getAttribute("action"), {headers: {Accept: "application/json"}});
	const next = await response.json();
	made = Date.now();
	challenge = next.challenge;
	options = JSON.stringify(next.options);
};
const ask = async more => {
	const o = JSON.parse(options), sealed = challenge;
	o.challenge = bytes(o.challenge);
	if (o.user) o.user.id = bytes(o.user.id);
	for (const c of (o.allowCredentials || []).concat(o.excludeCredentials || [])) c.id = bytes(c.id);
	const c = await (o.user ? C.create({publicKey: o}) : C.get({publicKey: o, ...more}));
	const r = c.response;
	fields.challenge.value = sealed;
	fields.credential.value = JSON.stringify({id: c.id, rawId: text(c.rawId), type: c.type, response: {
		clientDataJSON: text(r.clientDataJSON), attestationObject: text(r.attestationObject),
		transports: r.getTransports ? r.getTransports() : undefined,
		authenticatorData: text(r.authenticatorData), signature: text(r.signature), userHandle: text(r.userHandle)}});
	if (fields.trust) fields.trust.value = document.getElementById("trust").checked;
	form.requestSubmit();
};
const autofill = async () => {
	if (waiting) waiting.abort();
	if (!("autofill" in form.dataset) || !K.isConditionalMediationAvailable) return;
	try {
		if (!await K.isConditionalMediationAvailable()) return;
		waiting = new AbortController();
		await ask({mediation: "conditional", signal: waiting.signal});
	} catch {}
};
form.querySelector("button:not([type])").onclick = async event => {
	event.preventDefault();
	if (waiting) waiting.abort();
	if (!form.reportValidity()) return;
	failed.hidden = true;
	try {
		if (Date.now() - made > 24e4) await renew();
		await ask();
	} catch {
		failed.hidden = false;
		autofill();
	}
};
form.hidden = false;
setInterval(() => renew().then(autofill, () => {}), 24e4);
autofill();
})()
