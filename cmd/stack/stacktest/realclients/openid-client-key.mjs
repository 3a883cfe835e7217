// openid-client gets access tokens for a service, which has a key in place of a secret.
import assert from 'node:assert/strict'
import { importPKCS8 } from 'jose'
import * as client from 'openid-client'
import { setup } from './browser.mjs'

const { ISSUER, CLIENT_ID, KEY } = setup

const key = await importPKCS8(KEY, 'RS256')
const auth = client.PrivateKeyJwt({ key, kid: 'first' })
const config = await client.discovery(new URL(ISSUER), CLIENT_ID, undefined, auth, {
  execute: [client.allowInsecureRequests], // only for an ISSUER with http
})
const tokens = await client.clientCredentialsGrant(config)

assert.equal(tokens.token_type, 'bearer')
assert.equal((await client.tokenIntrospection(config, tokens.access_token)).client_id, CLIENT_ID)
