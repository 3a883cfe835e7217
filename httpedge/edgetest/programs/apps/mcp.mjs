// The Model Context Protocol: an MCP server, which is a protected resource, and an agent that knows
// nothing but the server's address. The agent finds the authorization server by the metadata of the
// resource, registers itself, and asks for tokens for that resource.
import express from 'express'
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { InvalidTokenError } from '@modelcontextprotocol/sdk/server/auth/errors.js'
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { CLIENT_ID, CLIENT_SECRET, ISSUER, base, listen, show } from './app.mjs'

const app = express()
const resource = `${base}/mcp`
const resourceMetadataUrl = `${base}/.well-known/oauth-protected-resource/mcp`

// The MCP server. It introspects tokens as a client of its own.
app.get('/.well-known/oauth-protected-resource/mcp', (_request, response) => response.json({
  resource, authorization_servers: [ISSUER], scopes_supported: ['notes:read'], bearer_methods_supported: ['header'],
}))
const verifier = {
  async verifyAccessToken(token) {
    const response = await fetch(`${ISSUER}/oauth/introspect`, {
      method: 'POST', body: new URLSearchParams({ token }),
      headers: { authorization: `Basic ${btoa(`${CLIENT_ID}:${CLIENT_SECRET}`)}` },
    })
    const about = await response.json()
    if (!about.active || ![about.aud].flat().includes(resource)) throw new InvalidTokenError('not for this resource')
    return { token, clientId: about.client_id, scopes: about.scope.split(' '), expiresAt: about.exp, extra: { sub: about.sub, aud: about.aud } }
  },
}
app.post('/mcp', requireBearerAuth({ verifier, requiredScopes: ['notes:read'], resourceMetadataUrl }), express.json(), async (request, response) => {
  const server = new McpServer({ name: 'notes', version: '1.0.0' })
  server.registerTool('whoami', { description: 'Say who asks' }, extra => ({ content: [{ type: 'text', text: JSON.stringify(extra.authInfo.extra) }] }))
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined })
  response.on('close', () => { transport.close(); server.close() })
  await server.connect(transport)
  await transport.handleRequest(request, response, request.body)
})
app.get('/mcp', (_request, response) => response.status(405).end())

// The agent.
const memory = {}
const provider = {
  redirectUrl: `${base}/callback`,
  clientMetadata: {
    client_name: 'An agent', redirect_uris: [`${base}/callback`], token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'], scope: 'notes:read',
  },
  clientInformation: () => memory.client,
  saveClientInformation: client => { memory.client = client },
  tokens: () => memory.tokens,
  saveTokens: tokens => { memory.tokens = tokens },
  redirectToAuthorization: url => { memory.redirect = url },
  saveCodeVerifier: verifier => { memory.verifier = verifier },
  codeVerifier: () => memory.verifier,
}
async function ask(code) {
  const transport = new StreamableHTTPClientTransport(new URL(resource), { authProvider: provider })
  if (code) await transport.finishAuth(code)
  const client = new Client({ name: 'agent', version: '1.0.0' })
  const connection = code ? new StreamableHTTPClientTransport(new URL(resource), { authProvider: provider }) : transport
  await client.connect(connection)
  const result = await client.callTool({ name: 'whoami', arguments: {} })
  return { signedIn: true, who: JSON.parse(result.content[0].text), refresh: Boolean(memory.tokens.refresh_token), client: memory.client.client_id }
}
app.get('/start', async (_request, response) => {
  try {
    show(response, await ask())
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error
    response.redirect(memory.redirect)
  }
})
app.get('/callback', async (request, response) => {
  if (request.query.error) return show(response, { error: request.query.error })
  show(response, await ask(request.query.code))
})
listen(app)
