// openid-client gets tokens for a device without a browser.
import assert from 'node:assert/strict'
import * as client from 'openid-client'
import { allowDevice, setup } from './browser.mjs'

const { ISSUER, CLIENT_ID } = setup
const show = text => shown.push(text)
const shown = []

const config = await client.discovery(new URL(ISSUER), CLIENT_ID, undefined, client.None(), {
  execute: [client.allowInsecureRequests], // only for an ISSUER with http
})
const device = await client.initiateDeviceAuthorization(config, { scope: 'openid email' })
show(`Open ${device.verification_uri} and enter ${device.user_code}`)
const waiting = client.pollDeviceAuthorizationGrant(config, device)

await allowDevice(device.verification_uri_complete)

const tokens = await waiting
const claims = await client.fetchUserInfo(config, tokens.access_token, tokens.claims().sub)

assert.equal(claims.email, setup.user.email)
assert.match(shown[0], /^Open http:.*\/device and enter [A-Z]{4}-[A-Z]{4}$/)

const second = await client.initiateDeviceAuthorization(config, { scope: 'openid email' })
const again = client.pollDeviceAuthorizationGrant(config, second)
await allowDevice(second.verification_uri_complete)
assert.equal((await again).claims().sub, claims.sub)
