// openid-client for an app that calls an API: the access token is for the API and userinfo.
import assert from 'node:assert/strict'
import * as client from 'openid-client'
import { setup, signIn } from './browser.mjs'

const { ISSUER, CLIENT_ID, CLIENT_SECRET, base } = setup

const config = await client.discovery(new URL(ISSUER), CLIENT_ID, CLIENT_SECRET, undefined, {
  execute: [client.allowInsecureRequests], // only for an ISSUER with http
})
const verifier = client.randomPKCECodeVerifier()
const state = client.randomState()
const nonce = client.randomNonce()
const start = client.buildAuthorizationUrl(config, {
  redirect_uri: `${base}/callback`, scope: 'openid email offline_access notes:read', state, nonce,
  resource: `${base}/reports`,
  code_challenge: await client.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256',
})

const callback = await signIn(start)

const tokens = await client.authorizationCodeGrant(config, callback, {
  pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true,
})
const claims = await client.fetchUserInfo(config, tokens.access_token, tokens.claims().sub)
const fresh = await client.refreshTokenGrant(config, tokens.refresh_token)

assert.equal(claims.email, setup.user.email)
for (const { access_token } of [tokens, fresh]) {
  const said = await client.tokenIntrospection(config, access_token)
  assert.deepEqual(said.aud, [`${base}/reports`, `${ISSUER}/oauth/userinfo`])
  assert.ok(said.scope.split(' ').includes('notes:read'))
}
const profile = await fetch(`${ISSUER}/api/user`, { headers: { authorization: `Bearer ${fresh.access_token}` } })
assert.equal(profile.status, 401)
assert.match((await profile.json()).message, /is for .*\/reports and .*\/oauth\/userinfo, not for this endpoint/)

// The person is the same at the next sign-in.
const again = await client.authorizationCodeGrant(config, await signIn(start), {
  pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true,
})
assert.equal(again.claims().sub, claims.sub)
