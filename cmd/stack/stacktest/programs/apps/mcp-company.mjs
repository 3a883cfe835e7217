// An agent of a company that asks a Model Context Protocol server: the company's issuer says who it acts for.
import { Client, CrossAppAccessProvider, discoverAndRequestJwtAuthGrant, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'

const { MCP_SERVER, CLIENT_ID, CLIENT_SECRET, ISSUER, COMPANY, COMPANY_ID, COMPANY_SECRET, ID_TOKEN } = process.env
const authProvider = new CrossAppAccessProvider({
  clientId: CLIENT_ID, clientSecret: CLIENT_SECRET, expectedIssuer: ISSUER,
  assertion: async ({ authorizationServerUrl, resourceUrl, scope, fetchFn }) => {
    const { jwtAuthGrant } = await discoverAndRequestJwtAuthGrant({
      idpUrl: COMPANY, audience: authorizationServerUrl, resource: resourceUrl, idToken: ID_TOKEN,
      clientId: COMPANY_ID, clientSecret: COMPANY_SECRET, scope, fetchFn,
    })
    return jwtAuthGrant
  },
})
const client = new Client({ name: 'agent', version: '1' })
await client.connect(new StreamableHTTPClientTransport(new URL(MCP_SERVER), { authProvider }))
console.log((await client.callTool({ name: 'whoami' })).content[0].text)
await client.close()
