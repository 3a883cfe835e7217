// A client of gatehouse for a page that greets people. It is small, but all of it is used.

/** What the service says when it refuses a request. */
export class Refusal extends Error {
  constructor(status, body, retryAfter) {
    super(body.message ?? `the service answered ${status}`);
    this.status = status;
    this.code = body.error ?? null; // null for a token that is not valid
    this.retryAfter = retryAfter; // seconds; null = not said
  }
}

/** Asks the gatehouse at a base URL. */
export class Gatehouse {
  constructor(base) {
    this.base = base;
  }

  /** Returns the basic profile of the person whose access token this is. */
  async profile(token) {
    return this.#json('/api/user', { headers: { Authorization: `Bearer ${token}` } });
  }

  /** Returns where an address or a domain is. */
  async lookup(query) {
    return this.#json(`/api/lookup?q=${encodeURIComponent(query)}`, {});
  }

  /** Returns where each of up to 50 addresses and domains is, in their order; ok is false for one that failed. */
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
      signal: AbortSignal.timeout(10_000),
    });
    const body = await response.json();
    if (response.ok) return body;
    const retryAfter = response.headers.get('Retry-After');
    throw new Refusal(response.status, body, retryAfter === null ? null : Number(retryAfter));
  }
}
