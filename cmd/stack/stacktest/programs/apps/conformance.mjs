// Runs the conformance suite. It imports fs.globSync, which Node.js has since version 22, for commands
// that are not used here: with older ones the import finds undefined.
import { register } from 'node:module'

const module = (text) => 'data:text/javascript,' + encodeURIComponent(text)
const files = module('export * from "node:fs"; export const globSync = undefined')
register(module(`export async function resolve(name, context, next) {
  return name === 'fs' && context.parentURL.includes('/conformance/dist/')
    ? { url: ${JSON.stringify(files)}, shortCircuit: true } : next(name, context)
}`))
await import('@modelcontextprotocol/conformance/dist/index.js')
