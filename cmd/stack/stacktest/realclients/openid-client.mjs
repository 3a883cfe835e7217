// openid-client uses every grant, as a confidential client with both authentication methods and as
// a public client.
import assert from 'node:assert/strict'
import * as client from 'openid-client'
import { assertRefused, assertWorks, setup, signIn } from './browser.mjs'

const discover = (id, auth) =>
  client.discovery(new URL(setup.url), id, undefined, auth, { algorithm: 'oauth2', execute: [client.allowInsecureRequests] })

async function useGrants(config) {
  const pkceCodeVerifier = client.randomPKCECodeVerifier()
  const expectedState = client.randomState()
  const callback = await signIn(client.buildAuthorizationUrl(config, {
    redirect_uri: setup.redirect_uri, scope: 'view-user detail-user', state: expectedState,
    code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier), code_challenge_method: 'S256',
  }))
  await assert.rejects(client.authorizationCodeGrant(config, callback, { pkceCodeVerifier: client.randomPKCECodeVerifier(), expectedState }),
    { error: 'invalid_grant', status: 400 }) // the code stays valid
  const first = await client.authorizationCodeGrant(config, callback, { pkceCodeVerifier, expectedState })
  assert.ok(first.expiresIn() > 0)
  await assertWorks(first.access_token)

  const second = await client.refreshTokenGrant(config, first.refresh_token, { scope: 'view-user' })
  await assertWorks(second.access_token)
  const details = await client.fetchProtectedResource(config, first.access_token, new URL(`${setup.url}/api/user/details`), 'GET')
  assert.equal((await details.json()).email, setup.user.email)
  await assert.rejects(client.fetchProtectedResource(config, second.access_token, new URL(`${setup.url}/api/user/details`), 'GET'),
    { name: 'WWWAuthenticateChallengeError', status: 403 })

  await client.tokenRevocation(config, second.refresh_token)
  await assertRefused(first.access_token)
  await assertRefused(second.access_token)
  await assert.rejects(client.refreshTokenGrant(config, second.refresh_token), { error: 'invalid_grant', status: 400 })
}

async function clientCredentials(config) {
  const { access_token: token, refresh_token: refresh } = await client.clientCredentialsGrant(config)
  assert.equal(refresh, undefined)
  assert.equal((await client.tokenIntrospection(config, token)).active, true)
  await client.tokenRevocation(config, token)
  assert.equal((await client.tokenIntrospection(config, token)).active, false)
}

const { id, secret } = setup.confidential
for (const auth of [client.ClientSecretBasic(secret), client.ClientSecretPost(secret)]) {
  const config = await discover(id, auth)
  await useGrants(config)
  await clientCredentials(config)
}
await useGrants(await discover(setup.public.id, client.None()))
await assert.rejects(discover(id, client.ClientSecretPost('wrong')).then(clientCredentials), { error: 'invalid_client', status: 401 })
