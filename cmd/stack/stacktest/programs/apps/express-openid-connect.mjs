// express-openid-connect: a web server's session, refresh, userinfo, logout at the provider and
// back-channel logout.
import express from 'express'
import eoc from 'express-openid-connect'
import session from 'express-session'
import { CLIENT_ID, CLIENT_SECRET, ISSUER, base, listen, show } from './app.mjs'

const app = express()
app.use(eoc.auth({
  issuerBaseURL: ISSUER, baseURL: base, clientID: CLIENT_ID, clientSecret: CLIENT_SECRET,
  clientAuthMethod: 'client_secret_basic', secret: 'a secret of 32 characters or more',
  authRequired: false, idpLogout: true,
  authorizationParams: { response_type: 'code', scope: 'openid profile email offline_access' },
  backchannelLogout: { store: new session.MemoryStore() },
}))
app.get('/', (request, response) => show(response, {
  signedIn: request.oidc.isAuthenticated(), claims: request.oidc.idTokenClaims, user: request.oidc.user,
}))
app.get('/userinfo', async (request, response) => show(response, { userinfo: await request.oidc.fetchUserInfo() }))
app.get('/refresh', async (request, response) => {
  const before = request.oidc.accessToken.access_token
  const after = await request.oidc.accessToken.refresh()
  show(response, { refreshed: before !== after.access_token, claims: request.oidc.idTokenClaims })
})
listen(app)
