// jose verifies access tokens in an API, and an id_token. openid-client gets them.
import assert from 'node:assert/strict'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import * as client from 'openid-client'
import { setup, signIn } from './browser.mjs'

const { ISSUER, CLIENT_ID, CLIENT_SECRET, base } = setup

const keys = createRemoteJWKSet(new URL(`${ISSUER}/oauth/jwks`))
async function authorize(accessToken, scope) {
  const { payload } = await jwtVerify(accessToken, keys, {
    issuer: ISSUER, audience: `${base}/api`, typ: 'at+jwt', requiredClaims: ['sub', 'scope'],
  })
  if (!payload.scope.split(' ').includes(scope)) throw new Error('insufficient_scope')
  return payload.sub
}

const config = await client.discovery(new URL(ISSUER), CLIENT_ID, CLIENT_SECRET, undefined, {
  execute: [client.allowInsecureRequests], // only for an ISSUER with http
})
const start = scope => client.buildAuthorizationUrl(config, {
  redirect_uri: `${base}/callback`, scope, resource: `${base}/api`, state: 'a',
})
const redeem = async scope => client.authorizationCodeGrant(config, await signIn(start(scope)), { expectedState: 'a' })

const tokens = await redeem('openid notes:read')
const sub = await authorize(tokens.access_token, 'notes:read')
const identity = await jwtVerify(tokens.id_token, keys, { issuer: ISSUER, audience: CLIENT_ID })
assert.equal(sub, identity.payload.sub)
const again = await redeem('openid notes:read')
assert.equal(await authorize(again.access_token, 'notes:read'), sub)
await assert.rejects(authorize(tokens.access_token, 'notes:write'), { message: 'insufficient_scope' })
await assert.rejects(authorize(tokens.id_token, 'notes:read'), { code: 'ERR_JWT_CLAIM_VALIDATION_FAILED' })
const [head, claims, signature] = tokens.access_token.split('.')
const forged = Buffer.from(claims, 'base64url').toString().replace('notes:read', 'notes:full')
await assert.rejects(authorize([head, Buffer.from(forged).toString('base64url'), signature].join('.'), 'notes:full'),
  { code: 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED' })
