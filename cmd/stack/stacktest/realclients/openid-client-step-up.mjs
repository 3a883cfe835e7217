// openid-client signs in with one factor, and then asks for two, as an API's challenge of RFC 9470 has it do.
import assert from 'node:assert/strict'
import * as client from 'openid-client'
import { setup, signIn } from './browser.mjs'

const { id, secret } = setup.confidential
const config = await client.discovery(new URL(setup.url), id, secret, undefined,
  { execute: [client.allowInsecureRequests] })

async function authorize(cookies, more) {
  const pkceCodeVerifier = client.randomPKCECodeVerifier()
  const expectedState = client.randomState()
  const request = {
    redirect_uri: setup.redirect_uri, scope: 'openid view-user', state: expectedState, skip_account_chooser: 'true',
    code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier), code_challenge_method: 'S256',
  }
  const callback = await signIn(client.buildAuthorizationUrl(config, { ...request, ...more }), cookies)
  const maxAge = more.max_age === undefined ? undefined : Number(more.max_age)
  return client.authorizationCodeGrant(config, callback, { pkceCodeVerifier, expectedState, maxAge, idTokenExpected: true })
}

const stepUp = { acr_values: '2', max_age: '600' }
const two = new Map()
const first = await authorize(two, { acr_values: '2' })
assert.equal(first.claims().acr, '2')
assert.deepEqual(first.claims().amr.toSorted(), ['mfa', 'otp', 'pwd'])
const described = await client.tokenIntrospection(config, first.access_token)
assert.equal(described.acr, '2')
assert.equal(described.auth_time, first.claims().auth_time)
// The session has the factor: nobody is asked again.
const again = await authorize(two, stepUp)
assert.equal(again.claims().acr, '2')
assert.ok(Date.now() / 1000 - again.claims().auth_time < 600)

// A person without a second factor goes on where the app only prefers it.
setup.user.email = setup.user.other
const one = new Map()
assert.equal((await authorize(one, { acr_values: '2 1' })).claims().acr, '1')
await assert.rejects(authorize(one, stepUp), { error: 'unmet_authentication_requirements' })
