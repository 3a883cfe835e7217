// An agent that asks a Model Context Protocol server, and signs its user in where that server says.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'
import express from 'express'
import { base, listen, show } from './app.mjs'

const server = new URL(process.env.MCP_SERVER)
const kept = {}
const provider = {
  redirectUrl: `${base}/callback`,
  clientMetadataUrl: process.env.CLIENT_METADATA || undefined,
  clientMetadata: {
    client_name: 'JavaScript agent', redirect_uris: [`${base}/callback`],
    grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'],
    token_endpoint_auth_method: 'none',
  },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => { kept.tokens = tokens },
  redirectToAuthorization: (page) => { kept.page = page },
  saveCodeVerifier: (verifier) => { kept.verifier = verifier },
  codeVerifier: () => kept.verifier,
}

// ask calls the tool of the server.
async function ask() {
  const transport = new StreamableHTTPClientTransport(server, { authProvider: provider })
  kept.transport = transport
  const client = new Client({ name: 'agent', version: '1' })
  await client.connect(transport)
  const answer = await client.callTool({ name: 'whoami' })
  await client.close()
  return answer.content[0].text
}

const app = express()
app.get('/login', async (_request, response) => {
  try {
    show(response, { said: await ask() })
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error
    response.redirect(kept.page.href)
  }
})
app.get('/callback', async (request, response) => {
  await kept.transport.finishAuth(request.query.code)
  const said = await ask()
  // The access token is refused from now on, so the next call refreshes it.
  kept.tokens = { ...kept.tokens, access_token: 'expired' }
  show(response, { said, again: await ask() })
})
listen(app)
