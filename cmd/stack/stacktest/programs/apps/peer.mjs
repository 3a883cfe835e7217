// oidc-provider, another OpenID Provider: the apps run against it as well, so that a test that fails
// with gatehouse alone is gatehouse's fault. Its own sample pages let anybody in by any name.
import Provider from 'oidc-provider'
import { CLIENT_ID, CLIENT_SECRET, ISSUER, PORT } from './app.mjs'

const { REDIRECT_URI, POST_LOGOUT_REDIRECT_URI, PUBLIC } = process.env
const provider = new Provider(ISSUER, {
  clients: [{
    client_id: CLIENT_ID, ...(PUBLIC ? { token_endpoint_auth_method: 'none' } : { client_secret: CLIENT_SECRET }),
    redirect_uris: [REDIRECT_URI], post_logout_redirect_uris: [POST_LOGOUT_REDIRECT_URI],
    grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'],
  }],
  clientBasedCORS: () => true,
  pkce: { required: () => false },
  claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'] },
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id, name: id, email: `${id}@example.com`, email_verified: true }) }),
  issueRefreshToken: () => true,
  features: { rpInitiatedLogout: { enabled: true } },
  conformIdTokenClaims: false,
})
provider.listen(Number(PORT), '127.0.0.1', () => console.log('ready'))
