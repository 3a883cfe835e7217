// An OpenID provider for people of gatehouse to continue with: npm's oidc-provider with its own forms.
// It reads its client from stdin, prints its issuer, and serves until stdin ends.
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'
import { Provider } from 'oidc-provider'

const lines = createInterface({ input: process.stdin })
lines.on('close', () => process.exit(0))
const setup = JSON.parse(await new Promise((resolve) => lines.once('line', resolve)))
const server = createServer()
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
const issuer = `http://127.0.0.1:${server.address().port}`
const provider = new Provider(issuer, {
  clients: [{ client_id: setup.client_id, client_secret: setup.client_secret, redirect_uris: [setup.redirect_uri] }],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
  cookies: { keys: ['a key of this test'] },
  // The person signs in as user@example.com; one with "unverified" in it has an unverified address.
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, name: 'Ada Upstream', email: id, email_verified: !id.includes('unverified') }),
  }),
})
server.on('request', provider.callback())
console.log(issuer)
