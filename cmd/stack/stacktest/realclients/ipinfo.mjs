// Published clients of ipinfo.io, changed in the base URL only. Prints what they return as JSON.
import assert from "node:assert";
import { readFileSync } from "node:fs";
import ipinfo from "ipinfo";
import nodeIPinfo from "node-ipinfo";

const { IPinfoWrapper, IPinfoLiteWrapper, IPinfoCoreWrapper } = nodeIPinfo;
const { url, token } = JSON.parse(readFileSync(0, "utf8"));
const ip = "8.8.4.4", ipv6 = "2001:4860:4860::8888";

// node-ipinfo
const client = new IPinfoWrapper(token, undefined, undefined, undefined, url);
const one = await client.lookupIp(ip);
assert.equal(one.ip, ip);
assert.equal(one.city, "Bangkok");
assert.equal(one.countryCode, "TH");
assert.equal(one.country, "Thailand"); // the client's own name for the code
assert.equal(one.loc, "13.7563,100.5018");
assert.equal(one.org, "AS64500 Example Net");
assert.equal(one.timezone, "Asia/Bangkok");
assert.equal((await client.lookupIp(ipv6)).ip, ipv6);
assert.equal((await client.lookupIp("10.0.0.1")).bogon, true);
const batch = await client.getBatch([ip, ipv6 + "/country", "10.0.0.1"]);
assert.equal(batch[ip].city, "Bangkok");
assert.match(batch[ipv6 + "/country"], /^[A-Z]{2}$/);
assert.equal(batch["10.0.0.1"].bogon, true);
const lite = new IPinfoLiteWrapper(token, undefined, undefined, undefined, url + "/lite");
const { asn, asName, countryCode } = await lite.lookupIp(ip);
assert.deepEqual([asn, asName, countryCode], ["AS64500", "Example Net", "TH"]);
const core = new IPinfoCoreWrapper(token, undefined, undefined, undefined, url + "/lookup");
const { geo, as } = await core.lookupIp(ip);
assert.deepEqual([geo.city, geo.country_code, as.asn], ["Bangkok", "TH", "AS64500"]);
const stranger = new IPinfoWrapper("unknown", undefined, undefined, undefined, url);
await assert.rejects(stranger.lookupIp(ip), /Unknown token|403/);

// ipinfo
ipinfo.HOSTNAME = ipinfo.HOSTNAME_SSL = url + "/";
assert.equal((await ipinfo(ip)).city, "Bangkok");
assert.equal((await ipinfo(ip, token)).country, "TH");
assert.equal((await ipinfo(ipv6)).ip, ipv6);
assert.equal((await ipinfo()).bogon, true); // this program has an address of loopback
assert.match(String(await ipinfo(ip + "/org")), /AS64500 Example Net/);
