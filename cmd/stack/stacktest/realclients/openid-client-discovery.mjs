// openid-client finds the provider by discovery(), signs in with OpenID Connect, refreshes, reads the
// claims and signs out.
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
  redirect_uri: `${base}/callback`, scope: 'openid profile email offline_access', state, nonce,
  code_challenge: await client.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256',
})

const cookies = new Map()
const callback = await signIn(start, cookies)

const tokens = await client.authorizationCodeGrant(config, callback, {
  pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true,
})
const claims = await client.fetchUserInfo(config, tokens.access_token, tokens.claims().sub)
const fresh = await client.refreshTokenGrant(config, tokens.refresh_token)
const end = client.buildEndSessionUrl(config, {
  id_token_hint: fresh.id_token, post_logout_redirect_uri: `${base}/`, state,
})

assert.equal(config.serverMetadata().issuer, ISSUER)
assert.equal(claims.email, setup.user.email)
assert.equal(fresh.claims().sub, claims.sub)
assert.equal(fresh.claims().auth_time, tokens.claims().auth_time)
assert.notEqual(fresh.access_token, tokens.access_token)
await assert.rejects(client.fetchUserInfo(config, tokens.access_token, 'another subject'), { code: 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED' })
assert.equal((await signIn(end, cookies)).href, `${base}/?state=${encodeURIComponent(state)}`)

// The session has ended: the provider does not sign in silently any more.
const silent = new URL(start)
silent.searchParams.set('prompt', 'none')
assert.equal((await signIn(silent, cookies)).searchParams.get('error'), 'login_required')

// The person is the same at the next sign-in.
const again = await client.authorizationCodeGrant(config, await signIn(start, new Map()), {
  pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true,
})
assert.equal(again.claims().sub, claims.sub)
