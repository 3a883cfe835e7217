// express-openid-connect for an app that calls an API: the access token is for the API and userinfo.
import express from 'express'
import eoc from 'express-openid-connect'
import { CLIENT_ID, CLIENT_SECRET, ISSUER, base, listen, show } from './app.mjs'

const app = express()
app.use(eoc.auth({
  issuerBaseURL: ISSUER, baseURL: base, clientID: CLIENT_ID, clientSecret: CLIENT_SECRET,
  clientAuthMethod: 'client_secret_basic', secret: 'a secret of 32 characters or more',
  authRequired: false, idpLogout: true,
  authorizationParams: {
    response_type: 'code', scope: 'openid profile email offline_access notes:read',
    resource: `${base}/orders`,
  },
}))
app.get('/', async (request, response) => show(response, {
  signedIn: request.oidc.isAuthenticated(), user: request.oidc.user,
  ...(request.oidc.isAuthenticated() && {
    claims: await request.oidc.fetchUserInfo(), token: request.oidc.accessToken.access_token,
  }),
}))
listen(app)
