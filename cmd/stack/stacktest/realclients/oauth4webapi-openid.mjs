// oauth4webapi signs in with OpenID Connect and validates the id_token, its signature too.
import assert from 'node:assert/strict'
import * as oauth from 'oauth4webapi'
import { setup, signIn } from './browser.mjs'

const { ISSUER, CLIENT_ID, CLIENT_SECRET, base } = setup

const insecure = { [oauth.allowInsecureRequests]: true } // only for an ISSUER with http
const issuer = new URL(ISSUER)
const found = await oauth.discoveryRequest(issuer, insecure)
const server = await oauth.processDiscoveryResponse(issuer, found)
const client = { client_id: CLIENT_ID }
const auth = oauth.ClientSecretBasic(CLIENT_SECRET)
const verifier = oauth.generateRandomCodeVerifier()
const state = oauth.generateRandomState()
const nonce = oauth.generateRandomNonce()
const start = new URL(server.authorization_endpoint)
start.search = new URLSearchParams({
  response_type: 'code', client_id: CLIENT_ID, redirect_uri: `${base}/callback`,
  scope: 'openid email', state, nonce, code_challenge_method: 'S256',
  code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
})

const callback = await signIn(start)

const params = oauth.validateAuthResponse(server, client, callback, state)
const response = await oauth.authorizationCodeGrantRequest(
  server, client, auth, params, `${base}/callback`, verifier, insecure)
const tokens = await oauth.processAuthorizationCodeResponse(server, client, response, {
  expectedNonce: nonce, maxAge: 3600, requireIdToken: true,
})
await oauth.validateApplicationLevelSignature(server, response, insecure)
const { sub } = oauth.getValidatedIdTokenClaims(tokens)
const claims = await oauth.processUserInfoResponse(server, client, sub,
  await oauth.userInfoRequest(server, client, tokens.access_token, insecure))

assert.equal(claims.email, setup.user.email)
assert.equal(server.issuer, ISSUER)

// The person is the same at the next sign-in.
const next = oauth.validateAuthResponse(server, client, await signIn(start), state)
const again = await oauth.processAuthorizationCodeResponse(server, client,
  await oauth.authorizationCodeGrantRequest(
    server, client, auth, next, `${base}/callback`, verifier, insecure),
  { expectedNonce: nonce, requireIdToken: true })
assert.equal(oauth.getValidatedIdTokenClaims(again).sub, sub)
