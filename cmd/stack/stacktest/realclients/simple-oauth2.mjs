// simple-oauth2 uses every grant with both authentication methods. It does not support
// public clients.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { AuthorizationCode, ClientCredentials } from 'simple-oauth2'
import { assertRefused, assertWorks, setup, signIn } from './browser.mjs'

const configure = (authorizationMethod, secret = setup.confidential.secret) => ({
  client: { id: setup.confidential.id, secret },
  auth: { tokenHost: setup.url }, // its default paths are gatehouse's
  options: { authorizationMethod },
})

// refused matches an error of the token endpoint.
const refused = (status, error) => thrown => thrown.output.statusCode === status && thrown.data.payload.error === error

async function useGrants(config) {
  const client = new AuthorizationCode(config)
  const verifier = randomBytes(32).toString('base64url')
  const callback = await signIn(client.authorizeURL({
    redirect_uri: setup.redirect_uri, scope: ['view-user'], state: 'of the session',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'), code_challenge_method: 'S256',
  }))
  assert.equal(callback.searchParams.get('state'), 'of the session')
  const grant = { code: callback.searchParams.get('code'), redirect_uri: setup.redirect_uri }
  await assert.rejects(client.getToken(grant), refused(400, 'invalid_grant')) // no verifier
  const first = await client.getToken({ ...grant, code_verifier: verifier })
  assert.equal(first.expired(), false)
  await assertWorks(first.token.access_token)

  const second = await client.createToken(JSON.parse(JSON.stringify(first))).refresh()
  assert.notEqual(second.token.access_token, first.token.access_token)
  await assertWorks(second.token.access_token)

  await second.revoke('access_token')
  await assertRefused(second.token.access_token)
  await assertWorks(first.token.access_token)
  await first.revokeAll()
  await assertRefused(first.token.access_token)
  await assert.rejects(second.refresh(), refused(400, 'invalid_grant'))
}

for (const method of ['header', 'body']) {
  await useGrants(configure(method))
  const machine = await new ClientCredentials(configure(method)).getToken({})
  assert.equal(machine.token.token_type, 'Bearer')
  assert.equal(machine.token.refresh_token, undefined)
  await assert.rejects(new ClientCredentials(configure(method, 'wrong')).getToken({}), refused(401, 'invalid_client'))
}
