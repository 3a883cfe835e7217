// Looks up each address of a file in two databases, and prints both records as JSON.
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import maxmind from "maxmind";

const [cityFile, asnFile, addressFile] = process.argv.slice(2);
const city = await maxmind.open(cityFile);
const asn = await maxmind.open(asnFile);

let out = "";
const flush = () => {
  const text = out;
  out = "";
  return new Promise((done) => process.stdout.write(text, done));
};
for await (const ip of createInterface({ input: createReadStream(addressFile) })) {
  out += JSON.stringify({ ip, ...city.get(ip), ...asn.get(ip) }) + "\n";
  if (out.length > 65536) await flush();
}
await flush();
