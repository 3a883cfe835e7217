// oauth4webapi uses every grant, as a confidential client with both authentication methods and as a
// public client.
import assert from 'node:assert/strict'
import * as oauth from 'oauth4webapi'
import { assertRefused, assertWorks, setup, signIn } from './browser.mjs'

const insecure = { [oauth.allowInsecureRequests]: true } // http, on loopback
const issuer = new URL(setup.url)
const server = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure }))

async function useGrants(client, auth) {
  const verifier = oauth.generateRandomCodeVerifier()
  const state = oauth.generateRandomState()
  const start = new URL(server.authorization_endpoint)
  start.search = new URLSearchParams({
    response_type: 'code', client_id: client.client_id, redirect_uri: setup.redirect_uri, scope: 'view-user', state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256',
  })
  const params = oauth.validateAuthResponse(server, client, await signIn(start), state)
  const redeem = async () => oauth.processAuthorizationCodeResponse(server, client,
    await oauth.authorizationCodeGrantRequest(server, client, auth, params, setup.redirect_uri, verifier, insecure))
  const first = await redeem()
  assert.equal(first.token_type, 'bearer')
  assert.ok(first.expires_in > 0)
  await assertWorks(first.access_token)

  const second = await oauth.processRefreshTokenResponse(server, client,
    await oauth.refreshTokenGrantRequest(server, client, auth, first.refresh_token, insecure))
  assert.notEqual(second.refresh_token, first.refresh_token)
  await assertWorks(second.access_token)

  await assert.rejects(redeem, { name: 'ResponseBodyError', error: 'invalid_grant', status: 400 })
  await assertRefused(second.access_token) // the second redemption revoked all tokens of the code
  await oauth.processRevocationResponse(await oauth.revocationRequest(server, client, auth, second.refresh_token, insecure))
}

async function clientCredentials(client, auth) {
  const ask = async scope => oauth.processClientCredentialsResponse(server, client,
    await oauth.clientCredentialsGrantRequest(server, client, auth, { scope }, insecure))
  const { access_token: token, refresh_token: refresh } = await ask('')
  assert.equal(refresh, undefined)
  const introspect = async () => oauth.processIntrospectionResponse(server, client,
    await oauth.introspectionRequest(server, client, auth, token, insecure))
  const before = await introspect()
  assert.equal(before.active, true)
  assert.equal(before.client_id, client.client_id)
  await oauth.processRevocationResponse(await oauth.revocationRequest(server, client, auth, token, insecure))
  assert.equal((await introspect()).active, false)
  await assert.rejects(ask('view-user'), { name: 'ResponseBodyError', error: 'invalid_scope', status: 400 })
}

const confidential = { client_id: setup.confidential.id }
for (const auth of [oauth.ClientSecretBasic(setup.confidential.secret), oauth.ClientSecretPost(setup.confidential.secret)]) {
  await useGrants(confidential, auth)
  await clientCredentials(confidential, auth)
}
await useGrants({ client_id: setup.public.id }, oauth.None())
await assert.rejects(clientCredentials(confidential, oauth.ClientSecretBasic('wrong')), { name: 'WWWAuthenticateChallengeError', status: 401 })
await assert.rejects(clientCredentials(confidential, oauth.ClientSecretPost('wrong')), { error: 'invalid_client', status: 401 })
