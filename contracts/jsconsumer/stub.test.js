// The client with pactcheck stub. GATEHOUSE_STUB has its address.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Gatehouse } from './client.js';

const base = process.env.GATEHOUSE_STUB;

test('works with a stub', { skip: !base }, async () => {
  const gatehouse = new Gatehouse(base);
  assert.ok((await gatehouse.profile('gtat_example')).name);
  assert.equal((await gatehouse.lookup('8.8.8.8')).ok, true);
  assert.equal((await gatehouse.bulk(['8.8.8.8', '10.0.0.1'])).length, 2);
  await assert.rejects(gatehouse.profile('gtat_wrong'), (error) => error.status === 401);
});
