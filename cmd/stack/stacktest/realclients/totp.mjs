// Prints the codes that two published authenticators make of a URL at times.
import { readFileSync } from "node:fs";
import { URI } from "otpauth";
import otplib from "otplib";

const { url, times } = JSON.parse(readFileSync(0, "utf8"));
const app = URI.parse(url);
const secret = new URL(url).searchParams.get("secret");
const codes = times.map(at => {
	otplib.authenticator.options = { epoch: at * 1000 };
	return [app.generate({ timestamp: at * 1000 }), otplib.authenticator.generate(secret)];
});
console.log(JSON.stringify({ issuer: app.issuer, label: app.label, codes }));
