// The consumer test: what the page relies on becomes pacts/profile-page-gatehouse.json.
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { MatchersV3, PactV4, SpecificationVersion } from '@pact-foundation/pact';

import { Gatehouse, GatehouseError } from './client.js';

const { fromProviderState, integer, like, nullValue, number, regex, string } = MatchersV3;

rmSync('pacts', { recursive: true, force: true }); // a pact is added to one that is there
const pact = new PactV4({
  consumer: 'profile-page',
  provider: 'gatehouse',
  dir: 'pacts',
  spec: SpecificationVersion.SPECIFICATION_VERSION_V4,
  logLevel: 'error',
});

const json = regex('^application/json.*', 'application/json'); // a charset may follow
const bearer = fromProviderState('Bearer ${access_token}', 'Bearer gtat_example');

test('reads a profile', async () => {
  await pact
    .addInteraction()
    .given('a user with every profile field set')
    .given('an access token')
    .uponReceiving('a request for a profile')
    .withRequest('GET', '/api/user', (b) => b.headers({ Authorization: bearer, Accept: 'application/json' }))
    .willRespondWith(200, (b) =>
      b
        .headers({ 'Content-Type': json, 'X-RateLimit-Remaining': regex('^[0-9]+$', '99') })
        .jsonBody({ id: integer(17), name: string('Ada Lovelace'), email: string('ada@mail.example') }),
    )
    .executeTest(async (server) => {
      const profile = await new Gatehouse(server.url).profile('gtat_example');
      assert.equal(profile.name, 'Ada Lovelace');
    });
});

test('reads a profile without an address', async () => {
  await pact
    .addInteraction()
    .given('a user registered by phone')
    .given('an access token')
    .uponReceiving('a request for the profile of a person who registered by phone')
    .withRequest('GET', '/api/user', (b) => b.headers({ Authorization: bearer, Accept: 'application/json' }))
    .willRespondWith(200, (b) => b.headers({ 'Content-Type': json }).jsonBody({ name: string('Ada'), email: nullValue() }))
    .executeTest(async (server) => {
      const profile = await new Gatehouse(server.url).profile('gtat_example');
      assert.equal(profile.email, null);
    });
});

test('notices that a token has expired', async () => {
  await pact
    .addInteraction()
    .given('an access token', { kind: 'expired' })
    .uponReceiving('a request for a profile with an expired token')
    .withRequest('GET', '/api/user', (b) => b.headers({ Authorization: bearer, Accept: 'application/json' }))
    .willRespondWith(401, (b) => b.headers({ 'Content-Type': json }).jsonBody({ error: 'token_expired', message: string('It has expired.') }))
    .executeTest(async (server) => {
      await assert.rejects(new Gatehouse(server.url).profile('gtat_example'), { status: 401, code: 'token_expired' });
    });
});

test('waits when the minute is used up', async () => {
  await pact
    .addInteraction()
    .given('an access token')
    .given('the limit of /api/user is used up')
    .uponReceiving('a request for a profile over the limit')
    .withRequest('GET', '/api/user', (b) => b.headers({ Authorization: bearer, Accept: 'application/json' }))
    .willRespondWith(429, (b) =>
      b
        .headers({ 'Content-Type': json, 'Retry-After': regex('^[1-9][0-9]*$', '42') })
        .jsonBody({ error: 'rate_limit_exceeded', retry_after: integer(42) }),
    )
    .executeTest(async (server) => {
      await assert.rejects(new Gatehouse(server.url).profile('gtat_example'), (failure) => failure instanceof GatehouseError && failure.retryAfter === 42);
    });
});

test('looks up where an address is', async () => {
  await pact
    .addInteraction()
    .given('the upstream knows a query', { query: '8.8.8.8' })
    .uponReceiving('a lookup')
    .withRequest('GET', '/api/lookup', (b) => b.query({ q: '8.8.8.8' }).headers({ Accept: 'application/json' }))
    .willRespondWith(200, (b) =>
      b.headers({ 'Content-Type': json }).jsonBody({
        ok: true,
        query: '8.8.8.8',
        location: { country: string('United States'), lat: number(39.03), lon: number(-77.5) },
        flags: { proxy: like(false) },
      }),
    )
    .executeTest(async (server) => {
      const { location } = await new Gatehouse(server.url).lookup('8.8.8.8');
      assert.equal(location.country, 'United States');
    });
});

test('is told what is wrong with a query', async () => {
  await pact
    .addInteraction()
    .uponReceiving('a lookup of a private address')
    .withRequest('GET', '/api/lookup', (b) => b.query({ q: '10.0.0.1' }).headers({ Accept: 'application/json' }))
    .willRespondWith(400, (b) => b.headers({ 'Content-Type': json }).jsonBody({ ok: false, error: 'invalid_query', reason: 'private_range' }))
    .executeTest(async (server) => {
      await assert.rejects(new Gatehouse(server.url).lookup('10.0.0.1'), { status: 400, code: 'invalid_query' });
    });
});

test('looks up several addresses at once', async () => {
  await pact
    .addInteraction()
    .given('the upstream knows a query', { query: '8.8.8.8' })
    .uponReceiving('a lookup of two addresses, one of them wrong')
    .withRequest('POST', '/api/bulk', (b) => b.headers({ Accept: 'application/json' }).jsonBody({ queries: ['8.8.8.8', 'nonsense'] }))
    .willRespondWith(200, (b) =>
      b.headers({ 'Content-Type': json }).jsonBody({
        ok: true,
        count: 2,
        failed: 1,
        results: [
          { ok: true, query: '8.8.8.8', location: { country: string('United States') } },
          { ok: false, query: 'nonsense', error: 'invalid_query', reason: 'malformed' },
        ],
      }),
    )
    .executeTest(async (server) => {
      const [first, second] = await new Gatehouse(server.url).bulk(['8.8.8.8', 'nonsense']);
      assert.equal(first.location.country, 'United States');
      assert.equal(second.reason, 'malformed');
    });
});
