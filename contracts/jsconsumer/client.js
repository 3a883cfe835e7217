// A client of gatehouse for a page that greets people.

/** An error response of the service. */
export class GatehouseError extends Error {
  constructor(status, body, retryAfter) {
    super(body.message ?? `the service responded with ${status}`);
    this.status = status;
    this.code = body.error ?? null; // null for an invalid token
    this.retryAfter = retryAfter; // seconds; null = unknown
  }
}

/** A client of the gatehouse at a base URL. */
export class Gatehouse {
  constructor(base) {
    this.base = base;
  }

  /** Returns the basic profile of the access token's person. */
  async profile(token) {
    return this.#json('/api/user', { headers: { Authorization: `Bearer ${token}` } });
  }

  /** Looks up an address or a domain. */
  async lookup(query) {
    return this.#json(`/api/lookup?q=${encodeURIComponent(query)}`, {});
  }

  /** Looks up 1 to 50 addresses and domains. Results are in order; ok is false for a failed one. */
  async bulk(queries) {
    const { results } = await this.#json('/api/bulk', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ queries }),
    });
    return results;
  }

  async #json(path, options) {
    const response = await fetch(this.base + path, {
      ...options,
      headers: { Accept: 'application/json', ...options.headers },
      signal: AbortSignal.timeout(60_000),
    });
    const body = await response.json();
    if (response.ok) return body;
    const retryAfter = response.headers.get('Retry-After');
    throw new GatehouseError(response.status, body, retryAfter === null ? null : Number(retryAfter));
  }
}
